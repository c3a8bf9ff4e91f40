# SPDX-License-Identifier: Apache-2.0
include_guard(GLOBAL)

set(HEADWISE_TEST_GROUPS "unit;property;golden;cases;fuzz;threads;engine;llama_cpp;cli;scripts"
    CACHE STRING "Which groups of tests to build; scripts = those that call compilers, CMake or shells")

# Tests of a sanitizer build say so in their names: one ctest may run several builds.
set(headwise_test_prefix headwise)
if(HEADWISE_SANITIZE)
    string(REPLACE ";" "_" headwise_sanitize_name "${HEADWISE_SANITIZE}")
    string(APPEND headwise_test_prefix ".${headwise_sanitize_name}")
endif()

# headwise_add_tests(<group> SOURCES <file>... [LINKS <target>...]): one program; its tests are called
# headwise.<group>.<suite>.<test>.
function(headwise_add_tests group)
    cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
    if(NOT group IN_LIST HEADWISE_TEST_GROUPS OR NOT arg_SOURCES)
        return()
    endif()
    # It replaces operator new, which other files must not see through.
    set(watch "${PROJECT_SOURCE_DIR}/tests/support/allocation_watch.cpp")
    set_source_files_properties("${watch}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    add_executable(headwise_${group}_tests ${arg_SOURCES} "${watch}")
    target_include_directories(headwise_${group}_tests PRIVATE "${PROJECT_SOURCE_DIR}/tests"
                                                               "${PROJECT_SOURCE_DIR}/examples")
    target_link_libraries(headwise_${group}_tests PRIVATE headwise_development GTest::gtest_main ${arg_LINKS})
    gtest_discover_tests(
        headwise_${group}_tests
        TEST_PREFIX ${headwise_test_prefix}.${group}.
        DISCOVERY_TIMEOUT 120
        PROPERTIES TIMEOUT 900)
endfunction()

# The environment of scripts, described in tests/support/toolchain.sh.
function(headwise_script_environment out)
    set(includes "")
    get_target_property(directories Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
    get_target_property(json_directories nlohmann_json::nlohmann_json INTERFACE_INCLUDE_DIRECTORIES)
    foreach(directory IN LISTS directories json_directories)
        # -isystem on a directory of the compiler's own would change the order of its search.
        if(directory AND NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
            string(APPEND includes "-isystem${directory} ")
        endif()
    endforeach()

    # Called by the name that was found, since clang is told by it that it compiles C++; told apart by
    # what the names lead to.
    set(compilers "")
    set(programs "")
    foreach(name IN ITEMS "${CMAKE_CXX_COMPILER}" g++ clang++)
        unset(compiler)
        find_program(compiler "${name}" NO_CACHE)
        if(compiler)
            file(REAL_PATH "${compiler}" program)
            if(NOT program IN_LIST programs)
                list(APPEND compilers "${compiler}")
                list(APPEND programs "${program}")
            endif()
        endif()
    endforeach()
    list(JOIN compilers ":" compilers)

    set(${out}
        "HEADWISE_COMPILERS=${compilers}" "HEADWISE_ROOT=${PROJECT_SOURCE_DIR}" "HEADWISE_INCLUDES=${includes}"
        "HEADWISE_CMAKE=${CMAKE_COMMAND}" "HEADWISE_GENERATOR=${CMAKE_GENERATOR}"
        "HEADWISE_VERSION=${PROJECT_VERSION}"
        PARENT_SCOPE)
endfunction()
headwise_script_environment(headwise_environment)

# headwise_add_script(<name> <script> [<argument>...]): the test headwise.<name> runs a bash script.
function(headwise_add_script name)
    add_test(NAME headwise.${name} COMMAND bash ${ARGN} WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    set(work "${PROJECT_BINARY_DIR}/scripts/${name}")
    set_tests_properties(headwise.${name} PROPERTIES ENVIRONMENT "${headwise_environment};HEADWISE_WORK=${work}"
                                                     TIMEOUT 900)
endfunction()
