# SPDX-License-Identifier: Apache-2.0
# cmake -C cmake/presets/valgrind.cmake -S . -B build/valgrind: ctest runs our programs under memcheck.
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1 -DHEADWISE_CHECK_LEVEL=2" CACHE STRING "")
set(CMAKE_CROSSCOMPILING_EMULATOR "valgrind;--quiet;--error-exitcode=99" CACHE STRING "")
set(HEADWISE_TEST_GROUPS "unit;cases;fuzz" CACHE STRING "")
set(HEADWISE_BUILD_BENCHMARKS OFF CACHE BOOL "")
set(HEADWISE_BUILD_EXAMPLES OFF CACHE BOOL "")
