# SPDX-License-Identifier: Apache-2.0
# What only our own tests, benchmarks and examples use. Nothing here reaches a consumer.
include_guard(GLOBAL)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

set(headwise_shared_default "$ENV{HEADWISE_SHARED_DIR}")
if(NOT headwise_shared_default AND EXISTS "${PROJECT_SOURCE_DIR}/../shared")
    get_filename_component(headwise_shared_default "${PROJECT_SOURCE_DIR}/../shared" ABSOLUTE)
endif()
set(HEADWISE_SHARED_DIR "${headwise_shared_default}"
    CACHE PATH "Optional folder with larger models and texts; tests that want it skip without it")

set(HEADWISE_MODEL_DIR "${PROJECT_SOURCE_DIR}/build/models"
    CACHE PATH "Where examples/llama/fetch_smollm2.sh put its model")

find_package(Threads REQUIRED)
headwise_find_needs(io problem)
if(problem)
    message(FATAL_ERROR "${problem}. It is needed to build the tests, benchmarks or examples.")
endif()
# The matrix products of the example engine, and the dense baseline of the benchmarks.
find_package(Eigen3 3.3 REQUIRED CONFIG)

include(${CMAKE_CURRENT_LIST_DIR}/Warnings.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/Sanitizers.cmake)

# The loops of attention, compiled once for all of our own programs.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/kernel_instances.cpp"
     CONTENT "#include <headwise/attend/kernel_instances.hpp>\n")
add_library(headwise_kernels STATIC "${PROJECT_BINARY_DIR}/kernel_instances.cpp")
target_compile_definitions(headwise_kernels PUBLIC HEADWISE_EXTERN_KERNELS)
target_link_libraries(headwise_kernels PRIVATE headwise::attend headwise_warnings headwise_sanitizers)

# Everything that one of our own programs is compiled with.
add_library(headwise_development INTERFACE)
target_link_libraries(
    headwise_development INTERFACE headwise::headwise headwise::attend headwise::profile headwise::io
                                   Eigen3::Eigen headwise_kernels headwise_warnings headwise_sanitizers
                                   Threads::Threads)
target_compile_definitions(
    headwise_development INTERFACE HEADWISE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                   HEADWISE_SHARED_DIR="${HEADWISE_SHARED_DIR}"
                                   HEADWISE_MODEL_DIR="${HEADWISE_MODEL_DIR}")
