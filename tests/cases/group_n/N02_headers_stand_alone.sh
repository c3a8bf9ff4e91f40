#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All public headers a second time after themselves. That each stands alone is shown by
# headwise.compile.header_sets.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

each_header | sed 's/.*/#include <&>/' >once.cpp
cat once.cpp once.cpp >twice.cpp
for compiler in "${compilers[@]}"; do
    "$compiler" -std=c++20 -fsyntax-only "${includes[@]}" twice.cpp
done
