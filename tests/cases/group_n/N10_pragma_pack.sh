#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pack pragma in force where one of our headers is included, the first or a later one, is refused in
# one sentence; after it is popped all is well.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

message="#pragma pack is in force where a header of headwise is included"
echo '#pragma pack(push, 1)
#include <headwise/headwise.hpp>' >first.cpp
echo '#include <headwise/core/types.hpp>
#pragma pack(push, 4)
#include <headwise/headwise.hpp>' >later.cpp
echo '#pragma pack(push, 1)
struct of_the_consumer { char c; double d; };
#pragma pack(pop)
#include <headwise/headwise.hpp>' >popped.cpp
for compiler in "${compilers[@]}"; do
    compile=("$compiler" -std=c++20 -fsyntax-only -I"$HEADWISE_ROOT/include")
    "${compile[@]}" popped.cpp
    expect_failure "$message" "${compile[@]}" first.cpp
    expect_failure "$message" "${compile[@]}" later.cpp
done
