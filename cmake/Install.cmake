# SPDX-License-Identifier: Apache-2.0
# The rules always exist, under the install component "headwise", so that a parent project may export a
# target that links headwise. HEADWISE_INSTALL decides whether a plain `cmake --install` runs them.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(headwise_rule COMPONENT headwise)
if(NOT HEADWISE_INSTALL)
    list(APPEND headwise_rule EXCLUDE_FROM_ALL)
endif()
set(headwise_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/headwise")

foreach(component IN ITEMS headwise attend profile io)
    if(component STREQUAL "headwise")
        set(target headwise)
    else()
        set(target headwise_${component})
    endif()
    install(TARGETS ${target} EXPORT headwise-${component} FILE_SET headers
            DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" ${headwise_rule})
    install(EXPORT headwise-${component} NAMESPACE headwise:: DESTINATION "${headwise_package_dir}"
            ${headwise_rule})
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/include/headwise/io/blueprint.schema.json"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/headwise/io" ${headwise_rule})

configure_package_config_file(
    "${CMAKE_CURRENT_LIST_DIR}/headwiseConfig.cmake.in" "${PROJECT_BINARY_DIR}/headwiseConfig.cmake"
    INSTALL_DESTINATION "${headwise_package_dir}" NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Below 1.0 a minor version may break its users, so it is the unit of compatibility.
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/headwiseConfigVersion.cmake" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/headwiseConfig.cmake"
              "${PROJECT_BINARY_DIR}/headwiseConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/Dependencies.cmake" DESTINATION "${headwise_package_dir}"
        ${headwise_rule})
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" ${headwise_rule})
