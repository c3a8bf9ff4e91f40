#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# must_not_compile.sh FILE.cpp
#
# The file must be refused with a message that its line `// refused: REGEX` describes, and must compile
# with -DCORRECTED: so it is refused for that reason and no other.
source "$(dirname "${BASH_SOURCE[0]}")/../support/toolchain.sh"

file=$1
regex=$(sed -n 's|^// refused: ||p' "$file")
[[ -n $regex ]] || fail "$file has no line '// refused: REGEX'"
for compiler in "${compilers[@]}"; do
    check=("$compiler" -std=c++20 -fsyntax-only "${includes[@]}" "$file")
    "${check[@]}" -DCORRECTED
    expect_failure "$regex" "${check[@]}"
done
