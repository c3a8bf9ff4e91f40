#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Units that configure nlohmann/json differently exchange blueprints.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"
cases=$HEADWISE_ROOT/tests/cases/group_n

compile() { "${compilers[0]}" -std=c++20 -O0 "${includes[@]}" -c "$cases/json_unit.cpp" "$@"; }
compile -DWRITER -o plain.o
compile -DJSON_DIAGNOSTICS=1 -DJSON_USE_IMPLICIT_CONVERSIONS=0 -o diagnostics.o
compile -DJSON_NOEXCEPTION -o noexception.o
for reader in diagnostics noexception; do
    "${compilers[0]}" plain.o $reader.o -o $reader
    ./$reader
    "${compilers[0]}" $reader.o plain.o -o $reader
    ./$reader
done
