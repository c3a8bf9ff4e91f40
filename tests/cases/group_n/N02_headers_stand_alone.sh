#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles with nothing included before it, and a second time after itself: here with
# the other compiler, where there is one; headwise.compile.header_sets does it with the build's own.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

for header in $(each_header); do
    printf '#include <%s>\n#include <%s>\n' "$header" "$header" >alone.cpp
    "${compilers[-1]}" -std=c++20 -fsyntax-only "${includes[@]}" alone.cpp || fail "$header"
done
