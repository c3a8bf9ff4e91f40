# SPDX-License-Identifier: Apache-2.0
# cmake -C cmake/presets/asan.cmake -S . -B build/asan
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELEASE "-O1" CACHE STRING "")
set(HEADWISE_SANITIZE "address;undefined" CACHE STRING "")
