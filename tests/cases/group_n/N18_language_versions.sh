#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles without a warning as what comes after C++20 (which all other tests use). C++17 is
# refused in one line.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

each_header | sed 's/.*/#include <&>/' >every_header.cpp
for compiler in "${compilers[@]}"; do
    "$compiler" -std=c++2b -Wall -Wextra -Wdeprecated -Werror -fsyntax-only "${includes[@]}" every_header.cpp
    echo '#include <headwise/headwise.hpp>' >door.cpp
    expect_failure "headwise needs C\+\+20" "$compiler" -std=c++17 -fsyntax-only "${includes[@]}" door.cpp
done
