# SPDX-License-Identifier: MIT
# What a user of the library gets: headers, both libraries, a CMake package, errand.pc; and from
# hosts/lua, where that is built, the Lua module.
include(CMakePackageConfigHelpers)

install(TARGETS errand EXPORT errandTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
# In a file of its own: it names what only those need who link it (errandConfig.cmake.in).
install(TARGETS errand_static EXPORT errandStaticTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/errand")
install(EXPORT errandTargets NAMESPACE errand:: DESTINATION "${package}")
install(EXPORT errandStaticTargets NAMESPACE errand:: DESTINATION "${package}")
configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/errandConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/errandConfig.cmake" INSTALL_DESTINATION "${package}"
    PATH_VARS CMAKE_INSTALL_LIBEXECDIR)
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatibility SameMinorVersion)
else()
    set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/errandConfigVersion.cmake"
                                 COMPATIBILITY ${compatibility})
install(FILES "${PROJECT_BINARY_DIR}/errandConfig.cmake"
              "${PROJECT_BINARY_DIR}/errandConfigVersion.cmake" DESTINATION "${package}")

# The .pc file finds its prefix from where it lies, so the tree can be moved.
file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
set(pc_uring "")
if(ERRAND_HAS_URING)
    set(pc_uring " -luring")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/errand.pc.in"
               "${PROJECT_BINARY_DIR}/errand.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/errand.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
