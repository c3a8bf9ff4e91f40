# SPDX-License-Identifier: Apache-2.0
# cmake -DSOURCE_DIR=<tree> -P tidiness.cmake
#
# Fails on a source file without its licence line, a header over 400 lines, or a top-level entry that
# has no place there.
cmake_minimum_required(VERSION 3.24)

set(complaints "")

file(GLOB top RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/*")
list(FILTER top EXCLUDE REGEX "^\\.")
list(REMOVE_ITEM top include tests bench examples cmake build CMakeLists.txt LICENSE README.md)
foreach(entry IN LISTS top)
    string(APPEND complaints "  ${entry}: no such entry belongs at the top\n")
endforeach()

set(patterns "")
foreach(folder IN ITEMS include tests bench examples cmake)
    foreach(name IN ITEMS *.hpp *.cpp *.h *.cmake *.cmake.in *.sh *.py CMakeLists.txt)
        list(APPEND patterns "${SOURCE_DIR}/${folder}/${name}")
    endforeach()
endforeach()
file(GLOB_RECURSE sources RELATIVE "${SOURCE_DIR}" ${patterns})
list(FILTER sources EXCLUDE REGEX "^tests/compile/fixtures/")
file(GLOB root_list RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/CMakeLists.txt")
foreach(source IN LISTS root_list sources)
    file(STRINGS "${SOURCE_DIR}/${source}" head LIMIT_COUNT 2)
    if(NOT head MATCHES "SPDX-License-Identifier: Apache-2\\.0")
        string(APPEND complaints "  ${source}: no SPDX-License-Identifier in its first lines\n")
    endif()
    if(source MATCHES "\\.hpp$")
        file(READ "${SOURCE_DIR}/${source}" text)
        string(REGEX REPLACE "[^\n]" "" line_ends "${text}")
        string(LENGTH "${line_ends}" lines)
        if(lines GREATER 400)
            string(APPEND complaints "  ${source}: ${lines} lines, and 400 is the most\n")
        endif()
    endif()
endforeach()

if(complaints)
    message(FATAL_ERROR "not tidy:\n${complaints}")
endif()
list(LENGTH sources count)
message(STATUS "${count} source files are tidy")
