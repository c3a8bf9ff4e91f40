#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The codecs and the kernels of attention and of the profiler as an ARM processor runs them: built by the cross
# compiler, run by an emulator.
source "$(dirname "${BASH_SOURCE[0]}")/../support/toolchain.sh"

googletest=/usr/src/googletest/googletest
for needed in aarch64-linux-gnu-g++ qemu-aarch64; do
    command -v "$needed" >/dev/null || { echo "skipped: no $needed"; exit 77; }
done
[[ -d $googletest ]] || { echo "skipped: no sources of googletest"; exit 77; }

aarch64-linux-gnu-g++ -std=c++20 -O1 "${strict[@]}" -Wno-psabi -static "${includes[@]}" -I"$HEADWISE_ROOT/tests" \
    -isystem "$googletest/include" -isystem "$googletest" "$HEADWISE_ROOT/tests/unit/attend/row_kernels_test.cpp" \
    "$HEADWISE_ROOT"/tests/unit/codec/*_test.cpp "$HEADWISE_ROOT/tests/unit/profile/map_kernels_test.cpp" \
    "$HEADWISE_ROOT/tests/support/allocation_watch.cpp" "$googletest/src/gtest-all.cc" \
    "$googletest/src/gtest_main.cc" -o neon_tests
qemu-aarch64 ./neon_tests
