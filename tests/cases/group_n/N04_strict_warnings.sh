#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A consumer's strict build, headers not as system headers, sees no warning at any level.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"
cases=$HEADWISE_ROOT/tests/cases/group_n

each_header | sed 's/.*/#include <&>/' >strict.cpp
echo '#include "exercise.hpp"
#include "exercise_files.hpp"
int main() { return from_text(as_text(exercise_profile())).heads.empty() || exercise_core() < exercise_codec<headwise::f32>() + exercise_codec<headwise::bf16>() ? 1 : 0; }' >>strict.cpp
for compiler in "${compilers[@]}"; do
    flags=("${strict[@]}" -Wundef -Wnull-dereference -Wimplicit-fallthrough -Wnon-virtual-dtor -Wdeprecated)
    # clang warns of the text alone, g++ of what it finds as it optimizes, too.
    levels=(-O0)
    is_gcc "$compiler" && flags+=(-Wmaybe-uninitialized -Wduplicated-cond -Wlogical-op) && levels+=(-O3)
    for level in "${levels[@]}"; do
        "$compiler" -std=c++20 $level "${flags[@]}" "${includes[@]}" -I"$cases" -c strict.cpp -o strict.o
    done
done
