# SPDX-License-Identifier: Apache-2.0
# cmake -DINCLUDE_DIR=<folder that holds headwise/> -P layering.cmake
#
# Fails when a header includes one that it must not see. A layer may include itself, what is listed for
# it here, and what those may include. An entry with a slash allows that one header.
cmake_minimum_required(VERSION 3.24)

set(layers core policy codec store blueprint manager attend profile io)
set(core_sees "")
set(policy_sees core)
set(codec_sees core)
set(store_sees core)
set(blueprint_sees core policy)
set(manager_sees core policy blueprint codec store)
set(attend_sees core codec store/slab.hpp manager/head_view.hpp)
set(profile_sees core policy codec blueprint)
set(io_sees core policy codec blueprint profile/attention_map.hpp)

# Third-party headers by their first letters, and the only layer that may include them.
set(guests Eigen nlohmann hwy)
set(Eigen_lives_in examples)
set(nlohmann_lives_in io)
set(hwy_lives_in attend)

set(complaints "")
macro(complain text)
    string(APPEND complaints "  headwise/${header}: ${text}\n")
endmacro()

file(GLOB_RECURSE headers RELATIVE "${INCLUDE_DIR}/headwise" "${INCLUDE_DIR}/headwise/*.hpp")
if(NOT headers)
    message(FATAL_ERROR "no headers under ${INCLUDE_DIR}/headwise")
endif()
foreach(header IN LISTS headers)
    string(REGEX MATCH "^([a-z]+)/" _ "${header}")
    set(layer "${CMAKE_MATCH_1}")
    if(layer AND NOT layer IN_LIST layers)
        complain("the folder ${layer} has no place in the layering")
    endif()

    file(STRINGS "${INCLUDE_DIR}/headwise/${header}" lines
         REGEX "^[ \t]*#[ \t]*(include|define HEADWISE_SIMD_TEXT)")
    foreach(line IN LISTS lines)
        string(REGEX REPLACE "^[^<\"]*[<\"]([^>\"]+)[>\"].*$" "\\1" included "${line}")
        foreach(guest IN LISTS guests)
            if(included MATCHES "^${guest}/" AND NOT "${layer}" STREQUAL "${${guest}_lives_in}")
                complain("<${included}> belongs in ${${guest}_lives_in}/ alone")
            endif()
        endforeach()
        if(included MATCHES "\\.\\./")
            complain("include by its full name, not ${included}")
        endif()
        if(layer AND included MATCHES "^headwise/(([a-z]+)/[^/]+)$")
            if(NOT "${CMAKE_MATCH_2}" STREQUAL "${layer}" AND NOT CMAKE_MATCH_2 IN_LIST ${layer}_sees
               AND NOT CMAKE_MATCH_1 IN_LIST ${layer}_sees)
                complain("${layer} must not see ${CMAKE_MATCH_1}")
            endif()
        elseif(layer AND included MATCHES "^headwise/headwise\\.hpp$")
            complain("the door is for users, not for our own headers")
        endif()
    endforeach()
endforeach()

if(complaints)
    message(FATAL_ERROR "layering broken:\n${complaints}")
endif()
list(LENGTH headers count)
message(STATUS "layering holds for ${count} headers")
