#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A consumer that carries another version of nlohmann/json, in the unit that includes headwise or in
# another: the program works and no type is mixed. The other version is this machine's, renumbered.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"
cases=$HEADWISE_ROOT/tests/cases/group_n

source_folder=$(dirname "$(dirname "$(echo "#include <nlohmann/json.hpp>" | "${compilers[0]}" -x c++ -E "${includes[@]}" - | sed -n "s|^# 1 \"\(.*/nlohmann/json.hpp\)\".*|\1|p" | head -1)")")
cp -r "$source_folder/nlohmann" .
sed -i 's/\(define NLOHMANN_JSON_VERSION_PATCH\) .*/\1 99/' nlohmann/detail/abi_macros.hpp
grep -q "VERSION_PATCH 99" nlohmann/detail/abi_macros.hpp || fail "could not renumber"

compiler=${compilers[0]}
flags=(-std=c++20 -O1 -c "$cases/json_unit.cpp")
is_gcc "$compiler" && flags+=(-flto)
"$compiler" -DWRITER "${includes[@]}" "${flags[@]}" -o ours.o &
"$compiler" -I. "${includes[@]}" "${flags[@]}" -o theirs.o
wait $!
"$compiler" -O1 -Werror -Wodr -flto=auto ours.o theirs.o -o both
./both
