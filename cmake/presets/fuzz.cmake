# SPDX-License-Identifier: Apache-2.0
# cmake -C cmake/presets/fuzz.cmake -S . -B build/fuzz && cmake --build build/fuzz --target headwise_fuzzers
include(${CMAKE_CURRENT_LIST_DIR}/asan.cmake)
find_program(CMAKE_CXX_COMPILER NAMES clang++ clang++-14 REQUIRED)
set(HEADWISE_BUILD_FUZZERS ON CACHE BOOL "")
set(HEADWISE_TEST_GROUPS "fuzz" CACHE STRING "")
set(HEADWISE_BUILD_BENCHMARKS OFF CACHE BOOL "")
set(HEADWISE_BUILD_EXAMPLES OFF CACHE BOOL "")
