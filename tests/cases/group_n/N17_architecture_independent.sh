#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A package installed on a 64-bit machine is found from a 32-bit build, and the other way round.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

install_headwise "$PWD/prefix"
mkdir project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.24)
project(other_pointer_size LANGUAGES NONE)
set(CMAKE_SIZEOF_VOID_P ${POINTER_SIZE})
find_package(headwise ${WANTED} REQUIRED)
END
for size in 4 8 16; do
    "$HEADWISE_CMAKE" -S project -B "build-$size" -G "$HEADWISE_GENERATOR" -DPOINTER_SIZE=$size -DWANTED="$HEADWISE_VERSION" \
        -DCMAKE_PREFIX_PATH="$PWD/prefix"
done
