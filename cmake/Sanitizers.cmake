# SPDX-License-Identifier: Apache-2.0
include_guard(GLOBAL)

set(HEADWISE_SANITIZE "" CACHE STRING "Sanitizers for our own programs: address;undefined | thread | memory")

add_library(headwise_sanitizers INTERFACE)
if(HEADWISE_SANITIZE)
    foreach(sanitizer IN LISTS HEADWISE_SANITIZE)
        if(NOT sanitizer MATCHES "^(address|undefined|thread|memory)$")
            message(FATAL_ERROR "HEADWISE_SANITIZE: ${sanitizer} is none of address, undefined, thread, memory")
        endif()
    endforeach()
    list(JOIN HEADWISE_SANITIZE "," headwise_sanitize_list)
    target_compile_options(
        headwise_sanitizers INTERFACE -fsanitize=${headwise_sanitize_list} -fno-sanitize-recover=all
                                      -fno-omit-frame-pointer -g1)
    target_link_options(headwise_sanitizers INTERFACE -fsanitize=${headwise_sanitize_list})
    # Most uses of a null pointer trap anyhow, sizes of objects the address sanitizer knows better, and we
    # have no virtual functions: a fifth of the time to compile.
    if("address" IN_LIST HEADWISE_SANITIZE AND "undefined" IN_LIST HEADWISE_SANITIZE)
        target_compile_options(headwise_sanitizers INTERFACE -fno-sanitize=null,object-size,vptr)
    endif()
endif()

option(HEADWISE_BUILD_FUZZERS "Link the fuzz targets with libFuzzer (clang); else they replay files" OFF)
if(HEADWISE_BUILD_FUZZERS)
    if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "HEADWISE_BUILD_FUZZERS needs clang, and the compiler is ${CMAKE_CXX_COMPILER_ID}")
    endif()
    target_compile_options(headwise_sanitizers INTERFACE -fsanitize=fuzzer-no-link)
endif()
