# SPDX-License-Identifier: Apache-2.0
# cmake -C cmake/presets/debug.cmake -S . -B build/debug
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
