# SPDX-License-Identifier: Apache-2.0
# The four interface targets. They carry an include directory, the language level and what they link:
# no flags, no definitions.
include_guard(GLOBAL)

# headwise_add_component(<target> <export name> HEADERS <glob>... [LINKS <target>...])
function(headwise_add_component target export_name)
    cmake_parse_arguments(arg "" "" "HEADERS;LINKS" ${ARGN})
    list(TRANSFORM arg_HEADERS PREPEND "${PROJECT_SOURCE_DIR}/include/headwise/")
    # A consumer's build need not look for new headers each time.
    set(watch "")
    if(PROJECT_IS_TOP_LEVEL)
        set(watch CONFIGURE_DEPENDS)
    endif()
    file(GLOB headers ${watch} ${arg_HEADERS})

    add_library(${target} INTERFACE)
    add_library(headwise::${export_name} ALIAS ${target})
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_link_libraries(${target} INTERFACE ${arg_LINKS})
    target_sources(
        ${target}
        INTERFACE FILE_SET headers
                  TYPE HEADERS
                  BASE_DIRS "${PROJECT_SOURCE_DIR}/include"
                  FILES ${headers})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${export_name})

    # A component whose dependency is absent stays usable by name, so that a package built here is whole.
    headwise_find_needs(${export_name} problem)
    if(problem)
        message(STATUS "${problem}")
    elseif(PROJECT_IS_TOP_LEVEL)
        set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
    endif()
endfunction()

# profile/attention_map.hpp is what io reads into; the rest of profile is a component of its own.
headwise_add_component(
    headwise headwise
    HEADERS *.hpp core/*.hpp policy/*.hpp codec/*.hpp store/*.hpp blueprint/*.hpp manager/*.hpp
            profile/attention_map.hpp)
headwise_add_component(headwise_attend attend HEADERS attend/*.hpp LINKS headwise)
headwise_add_component(headwise_profile profile HEADERS profile/*.hpp LINKS headwise)
headwise_add_component(
    headwise_io io
    HEADERS io/*.hpp
    LINKS headwise nlohmann_json::nlohmann_json)
