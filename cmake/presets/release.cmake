# SPDX-License-Identifier: Apache-2.0
# cmake -C cmake/presets/release.cmake -S . -B build/release
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
