#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two units that include every header and use it link without a warning, as one program and through a
# shared library, and agree on where the inline variables are. With g++ also under -flto -Wodr. One of the
# two holds the program's kernels (HEADWISE_EXTERN_KERNELS).
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"
cases=$HEADWISE_ROOT/tests/cases/group_n

each_header | sed 's/.*/#include <&>/' >every_header.hpp
for compiler in "${compilers[@]}"; do
    flags=(-std=c++20 -O1 -fPIC "${includes[@]}" -include "$PWD/every_header.hpp")
    is_gcc "$compiler" && flags+=(-flto -ffat-lto-objects)
    "$compiler" "${flags[@]}" -DUNIT=a -DWITH_MAIN -DHEADWISE_EXTERN_KERNELS -c "$cases/two_units.cpp" -o a.o &
    "$compiler" "${flags[@]}" -DUNIT=b -c "$cases/two_units.cpp" -o b.o
    wait $!

    rm -f libb.a && ar rc libb.a b.o
    "$compiler" -fno-lto -Werror a.o libb.a -Wl,--no-undefined,--fatal-warnings -o static
    ./static
    "$compiler" -fno-lto -Werror -shared b.o -Wl,--no-undefined,--fatal-warnings -o libb.so
    "$compiler" -fno-lto -Werror a.o ./libb.so -Wl,--fatal-warnings -o shared
    ./shared
    if is_gcc "$compiler"; then
        "$compiler" -O1 -flto=auto -Wodr -Wlto-type-mismatch -Werror a.o b.o -o optimized
        ./optimized
    fi
done
