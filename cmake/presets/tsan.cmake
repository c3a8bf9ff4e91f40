# SPDX-License-Identifier: Apache-2.0
# cmake -C cmake/presets/tsan.cmake -S . -B build/tsan
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELEASE "-O1" CACHE STRING "")
set(HEADWISE_SANITIZE "thread" CACHE STRING "")
# GCC warns of code that it instrumented itself; the plain build is where warnings are errors.
set(HEADWISE_WARNINGS_AS_ERRORS OFF CACHE BOOL "")
