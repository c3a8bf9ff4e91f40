#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles with nothing included before it, here with the other compiler, where there
# is one; headwise.compile.header_sets does it with the build's own. And all of them a second time after
# themselves.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

check() { "${compilers[-1]}" -std=c++20 -fsyntax-only "${includes[@]}" "$1"; }
each_header | sed 's/.*/#include <&>/' >once.cpp
cat once.cpp once.cpp >twice.cpp
check twice.cpp || fail "all headers twice"
((${#compilers[@]} > 1)) || exit 0
for header in $(each_header); do
    echo "#include <$header>" >alone.cpp
    check alone.cpp || fail "$header"
done
