#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cache used by a global's constructor and destructor gives what it gives in main, in either link
# order; the address sanitizer sees no use of what is not initialized yet.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"
cases=$HEADWISE_ROOT/tests/cases/group_n

for compiler in "${compilers[@]}"; do
    for unit in GLOBAL MAIN; do
        "$compiler" -std=c++20 -O0 -g1 -fsanitize=address "${includes[@]}" -D$unit -c "$cases/static_life.cpp" -o $unit.o
    done
    for order in "GLOBAL.o MAIN.o" "MAIN.o GLOBAL.o"; do
        read -ra objects <<<"$order"
        "$compiler" -fsanitize=address "${objects[@]}" -o program
        ASAN_OPTIONS=check_initialization_order=1:strict_init_order=1 ./program >said.txt
        [[ ! -s said.txt ]] || fail "$order: $(cat said.txt)"
    done
done
