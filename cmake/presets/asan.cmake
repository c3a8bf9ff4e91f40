# SPDX-License-Identifier: Apache-2.0
# cmake -C cmake/presets/asan.cmake -S . -B build/asan
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
# Level 2 audits every stream after each commit, cancel and rollback.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DHEADWISE_CHECK_LEVEL=2" CACHE STRING "")
set(HEADWISE_SANITIZE "address;undefined" CACHE STRING "")
# GCC warns of code that it instrumented itself; the plain build is where warnings are errors.
set(HEADWISE_WARNINGS_AS_ERRORS OFF CACHE BOOL "")
