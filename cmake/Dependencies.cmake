# SPDX-License-Identifier: Apache-2.0
# What the components of headwise need, for this build and for the installed package alike.
include_guard(DIRECTORY)

# component -> package, imported target, first version that works, first version that is refused
set(headwise_io_needs nlohmann_json nlohmann_json::nlohmann_json 3.10 4)

# headwise_find_needs(<component> <problem>)
#
# Finds the package that a component needs. <problem> is empty on success, else a sentence for the
# reader. The range is checked here, since no range can be passed on: the version file of
# nlohmann_json refuses every request that starts below its own major version.
function(headwise_find_needs component problem)
    set(${problem} "" PARENT_SCOPE)
    if(NOT DEFINED headwise_${component}_needs)
        return()
    endif()
    list(GET headwise_${component}_needs 0 package)
    list(GET headwise_${component}_needs 1 target)
    list(GET headwise_${component}_needs 2 first)
    list(GET headwise_${component}_needs 3 end)
    set(wanted "headwise::${component} needs the package ${package}, version ${first} or newer and below ${end}")

    find_package(${package} CONFIG QUIET)
    if(NOT ${package}_FOUND AND NOT TARGET ${target})
        set(${problem} "${wanted}, and it was not found" PARENT_SCOPE)
    elseif(NOT TARGET ${target})
        set(${problem} "${wanted}, and what was found defines no target ${target}" PARENT_SCOPE)
    elseif(${package}_VERSION AND (${package}_VERSION VERSION_LESS first OR ${package}_VERSION
                                                                            VERSION_GREATER_EQUAL end))
        set(${problem} "${wanted}, and version ${${package}_VERSION} was found" PARENT_SCOPE)
    endif()
endfunction()
