# SPDX-License-Identifier: MIT
# The library's targets.  The same sources are compiled twice:
#   errand_objects   for errand (shared) and errand_static: hidden visibility
#   errand_testing   with ERRAND_TESTING=1, for the tests, which see the internal headers too
# A folder of src adds its files to both by errand_sources(file.c ...).  With ERRAND_ONE_COPY they are
# compiled once, and programs have the pause points of the tests, at which nothing ever stops.

find_path(ERRAND_XXHASH_INCLUDE xxhash.h)
if(NOT ERRAND_XXHASH_INCLUDE)
    message(FATAL_ERROR "xxhash.h not found: install libxxhash-dev")
endif()

# libffi calls what was described at run time (src/foreign).  Nobody who uses the library sees it.
if(NOT PKG_CONFIG_FOUND)
    message(FATAL_ERROR "pkg-config not found: install pkgconf")
endif()
pkg_check_modules(ERRAND_FFI IMPORTED_TARGET libffi)
if(NOT ERRAND_FFI_FOUND)
    message(FATAL_ERROR "libffi not found: install libffi-dev")
endif()
# libseccomp knows the calls that filters of sandboxes name (src/workers/sandbox/filter.c), in the same way.
pkg_check_modules(ERRAND_SECCOMP IMPORTED_TARGET libseccomp)
if(NOT ERRAND_SECCOMP_FOUND)
    message(FATAL_ERROR "libseccomp not found: install libseccomp-dev")
endif()
# Without liburing the reactor has its other back end alone.
find_path(ERRAND_URING_INCLUDE liburing.h)
find_library(ERRAND_URING_LIBRARY uring)
if(ERRAND_URING AND ERRAND_URING_INCLUDE AND ERRAND_URING_LIBRARY)
    set(ERRAND_HAS_URING 1)
else()
    set(ERRAND_HAS_URING 0)
    message(STATUS "liburing is not used: the reactor is built with epoll only")
endif()

# libcurl is loaded when it is first used: its headers are all that the build needs.
find_path(ERRAND_CURL_INCLUDE curl/curl.h)
if(ERRAND_HTTP AND ERRAND_CURL_INCLUDE)
    set(ERRAND_HAS_CURL 1)
else()
    set(ERRAND_HAS_CURL 0)
    message(STATUS "libcurl is not used: there are no HTTP requests")
endif()

function(errand_describe_sources target)
    target_include_directories(${target} PRIVATE
        "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
    # _GNU_SOURCE is given here to every file and defined in none.
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE=
        ERRAND_HAS_URING=${ERRAND_HAS_URING} ERRAND_HAS_CURL=${ERRAND_HAS_CURL})
    if(ERRAND_HAS_CURL)
        target_include_directories(${target} SYSTEM PRIVATE "${ERRAND_CURL_INCLUDE}")
    endif()
    if(ERRAND_HAS_URING)
        target_include_directories(${target} SYSTEM PRIVATE "${ERRAND_URING_INCLUDE}")
    endif()
    # xxhash is used as a header only (XXH_INLINE_ALL); nothing links it.
    target_include_directories(${target} SYSTEM PRIVATE "${ERRAND_XXHASH_INCLUDE}"
        ${ERRAND_FFI_INCLUDE_DIRS} ${ERRAND_SECCOMP_INCLUDE_DIRS})
    target_link_libraries(${target} PRIVATE
        $<BUILD_INTERFACE:errand_warnings> $<BUILD_INTERFACE:errand_sanitize>)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    # Fields that were just stored one by one must not be loaded in pairs: the processor cannot
    # forward such a load from its store buffer and waits until that has drained.
    target_compile_options(${target} PRIVATE -fno-tree-slp-vectorize)
    # A frame of ours never jumps over the guard of a body's stack, and one that was overrun is told.
    target_compile_options(${target} PRIVATE -fstack-clash-protection -fstack-protector-strong)
endfunction()

function(errand_describe_library target)
    target_include_directories(${target} PUBLIC
        "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
        "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    target_link_libraries(${target} PUBLIC Threads::Threads
        $<BUILD_INTERFACE:errand_sanitize>)
    # A static library names it for whoever links that: see errandConfig.cmake and errand.pc.
    target_link_libraries(${target} PRIVATE PkgConfig::ERRAND_FFI PkgConfig::ERRAND_SECCOMP)
    if(ERRAND_HAS_URING) # by name: what links the static library links it, too
        target_link_libraries(${target} PRIVATE uring)
    endif()
endfunction()

add_library(errand_objects OBJECT)
errand_describe_sources(errand_objects)
set_target_properties(errand_objects PROPERTIES C_VISIBILITY_PRESET hidden)

# The folders call each other for every operation: as a whole they are a fifth faster.  Fat
# objects, so that the static library also serves those who link without it.
set(lto_link "")
if(ERRAND_LTO AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    target_compile_options(errand_objects PRIVATE -flto=auto -ffat-lto-objects)
    set(lto_link -flto=auto -O2)
endif()

add_library(errand SHARED $<TARGET_OBJECTS:errand_objects>)
target_link_options(errand PRIVATE ${lto_link})
add_library(errand::errand ALIAS errand)
errand_describe_library(errand)
# Before 1.0 each minor version may change the binary interface.
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(soversion "0.${PROJECT_VERSION_MINOR}")
else()
    set(soversion "${PROJECT_VERSION_MAJOR}")
endif()
set_target_properties(errand PROPERTIES
    VERSION "${PROJECT_VERSION}" SOVERSION "${soversion}"
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/src/errand.map")
# nodelete: the library cannot be unloaded under a running thread.  A sanitized library
# leaves the sanitizer's names to the program.
target_link_options(errand PRIVATE
    "LINKER:--version-script=${PROJECT_SOURCE_DIR}/src/errand.map"
    LINKER:-z,nodelete LINKER:--as-needed)
if(NOT ERRAND_SANITIZE)
    target_link_options(errand PRIVATE LINKER:-z,defs)
endif()

add_library(errand_static STATIC $<TARGET_OBJECTS:errand_objects>)
if(lto_link)
    target_link_options(errand_static INTERFACE "$<BUILD_INTERFACE:${lto_link}>")
endif()
errand_describe_library(errand_static)
set_target_properties(errand_static PROPERTIES OUTPUT_NAME errand EXPORT_NAME static)
add_library(errand::static ALIAS errand_static)

if(ERRAND_ONE_COPY)
    add_library(errand_testing STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:errand_objects>)
    target_compile_definitions(errand_objects PRIVATE ERRAND_TESTING=1)
    set(errand_copies errand_objects)
else()
    add_library(errand_testing STATIC EXCLUDE_FROM_ALL)
    errand_describe_sources(errand_testing)
    set(errand_copies errand_objects errand_testing)
endif()
errand_describe_library(errand_testing)
target_compile_definitions(errand_testing PUBLIC ERRAND_TESTING=1)
target_include_directories(errand_testing INTERFACE "${PROJECT_SOURCE_DIR}/src")

function(errand_sources)
    foreach(file IN LISTS ARGN)
        foreach(target IN LISTS errand_copies)
            target_sources(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
        endforeach()
    endforeach()
endfunction()
