#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Units that differ in NDEBUG, optimisation and the standard library's assertions agree on layouts and
# share a cache. Units that differ in our check level, which changes inline code, do not link.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"
cases=$HEADWISE_ROOT/tests/cases/group_n

for compiler in "${compilers[@]}"; do
    compile() { "$compiler" -std=c++20 "${includes[@]}" -Wno-invalid-offsetof -c "$cases/layout_unit.cpp" "$@"; }
    compile -DWITH_MAIN -DNDEBUG -O2 -o main.o
    compile -O0 -D_GLIBCXX_ASSERTIONS -o other.o
    "$compiler" main.o other.o -o mixed
    ./mixed
done
for level in 0 2; do
    compile -DHEADWISE_CHECK_LEVEL=$level -O0 -o other-level.o
    expect_failure "undefined reference to .*append_elsewhere.*checks1" "$compiler" main.o other-level.o -o mixed
    compile -DHEADWISE_CHECK_LEVEL=$level -DWITH_MAIN -O0 -o main-level.o
    "$compiler" main-level.o other-level.o -o same-level
    ./same-level
done
expect_failure "HEADWISE_CHECK_LEVEL must be 0, 1 or 2" compile -DHEADWISE_CHECK_LEVEL=3 -o none.o
