#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without exceptions and RTTI the library builds and works: refusals stay values, and bad data reaches
# the consumer's handler with the message that an exception would have carried.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"
cases=$HEADWISE_ROOT/tests/cases/group_n

for compiler in "${compilers[@]}"; do
    build=("$compiler" -std=c++20 -O0 "${includes[@]}" "${strict[@]}" "$cases/without_exceptions.cpp")
    "${build[@]}" -o with
    "${build[@]}" -fno-exceptions -fno-rtti -o without
    for program in with without; do
        status=0
        ./$program >$program.txt || status=$?
        [[ $status -eq 3 ]] || fail "$program ended with $status, not 3"
    done
    cmp with.txt without.txt
    grep -q "window: out of range: got 0, expected a number from 1" without.txt || fail "message: $(cat without.txt)"

    # Files and profiles too.
    "$compiler" -std=c++20 -O0 -fno-exceptions -fno-rtti "${includes[@]}" "$cases/bad_file.cpp" -o bad_file
    status=0
    ./bad_file >bad_file.txt || status=$?
    [[ $status -eq 3 ]] || fail "bad_file ended with $status, not 3"
    grep -q "/format" bad_file.txt || fail "message: $(cat bad_file.txt)"
done
