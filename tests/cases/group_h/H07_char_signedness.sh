#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rows, outputs and saved files are the same bytes whether char is signed, as on x86, or not, as on ARM.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

for compiler in "${compilers[@]}"; do
    for sign in signed unsigned; do
        "$compiler" -std=c++20 -O0 -f$sign-char "${strict[@]}" "${includes[@]}" \
            "$HEADWISE_ROOT/tests/cases/group_h/print_quantised.cpp" -o print_quantised
        ./print_quantised >$sign.txt
    done
    [[ $(wc -l <signed.txt) == 4 ]] || fail "not all was printed"
    cmp signed.txt unsigned.txt || fail "$compiler: the bytes depend on the sign of char"
done
