# SPDX-License-Identifier: MIT
# errand_test(name file.c ... [TIMEOUT seconds] [LABELS word ...] [LIBRARIES target ...]
#             [ENVIRONMENT NAME=value ...] [SERIAL] [VARIANTS NAME value ...])
#   A cmocka program against errand_testing and tests/support.  name mirrors the folder, for
#   example core_status; the program is <build>/tests/bin/<name>.
#   TIMEOUT  of the whole program (default 120); each test has a watchdog of its own
#   LABELS   smoke: also run under valgrind · slow: left out by ./check --quick ·
#            long: only in ./check --long ·
#            stress: run alone · jemalloc_off: no second program with jemalloc ·
#            hostile: what stands in tests/hostile has it by itself
#   SERIAL   never at the same time as another test
#   VARIANTS runs it once for each value of an environment variable; a run is called <name>_<value>
# errand_test_rig(name file.c ... [LIBRARIES target ...])
#   What several tests share, compiled once; they name it among their LIBRARIES.
# errand_command_test(name COMMAND word ... [TIMEOUT] [LABELS] [ENVIRONMENT] [SERIAL])
#   Any command; it counts as one test, or as the tests whose result lines it prints in
#   cmocka's form.
# errand_fuzz_target(name file.c ...)
#   LLVMFuzzerTestOneInput in file.c: with ERRAND_LIBFUZZER a fuzzer, else a program that
#   runs every file of fuzz/<name>/corpus.
#
# All of them are listed in <build>/tests.list, one line each, fields separated by tabs:
# kind, name, timeout, labels, environment, command words.  ci/run_tests.py reads it.

find_path(ERRAND_CMOCKA_INCLUDE cmocka.h)
find_library(ERRAND_CMOCKA_LIBRARY cmocka)
# What some stages of ./check need and no more: all fuzz targets; the tests labelled smoke.
add_custom_target(fuzz_all)
add_custom_target(smoke)
set(ERRAND_TEST_LIST "${PROJECT_BINARY_DIR}/tests.list")
define_property(GLOBAL PROPERTY ERRAND_TEST_LINES BRIEF_DOCS "lines" FULL_DOCS "of tests.list")
set_property(GLOBAL PROPERTY ERRAND_TEST_LINES "")

# Written when everything was read, also where no folder has a test yet.
cmake_language(DEFER DIRECTORY "${PROJECT_SOURCE_DIR}" CALL errand_write_test_list)
function(errand_write_test_list)
    get_property(lines GLOBAL PROPERTY ERRAND_TEST_LINES)
    file(GENERATE OUTPUT "${ERRAND_TEST_LIST}" CONTENT "${lines}")
endfunction()

function(errand_list_test kind name timeout labels environment)
    if(CMAKE_CURRENT_SOURCE_DIR MATCHES "/tests/hostile(/|$)")
        list(APPEND labels hostile)
    endif()
    list(JOIN labels "," labels)
    list(JOIN environment "," variables)
    list(JOIN ARGN "\t" words)
    set_property(GLOBAL APPEND_STRING PROPERTY ERRAND_TEST_LINES
        "${kind}\t${name}\t${timeout}\t${labels}\t${variables}\t${words}\n")
    if(NOT kind STREQUAL "fuzz")
        add_test(NAME ${name} COMMAND ${ARGN})
        set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${labels}"
            ENVIRONMENT "${environment}")
    endif()
endfunction()

function(errand_test_rig name)
    cmake_parse_arguments(PARSE_ARGV 1 rig "" "" "LIBRARIES")
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${rig_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PUBLIC errand_test_support ${rig_LIBRARIES}
        PRIVATE errand_warnings)
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE=)
    target_compile_options(${name} PRIVATE ${errand_test_compile})
endfunction()

function(errand_test name)
    cmake_parse_arguments(PARSE_ARGV 1 test "SERIAL" "TIMEOUT"
        "LABELS;LIBRARIES;ENVIRONMENT;VARIANTS")
    if(NOT test_TIMEOUT)
        set(test_TIMEOUT 120)
    endif()
    if(test_SERIAL)
        list(APPEND test_LABELS serial)
    endif()
    add_library(${name}_objects OBJECT ${test_UNPARSED_ARGUMENTS})
    target_link_libraries(${name}_objects PRIVATE errand_testing errand_test_support
        errand_warnings errand_sanitize ${test_LIBRARIES})
    target_compile_definitions(${name}_objects PRIVATE _GNU_SOURCE=)
    target_compile_options(${name}_objects PRIVATE ${errand_test_compile})
    set(programs ${name})
    if(ERRAND_TEST_JEMALLOC AND ERRAND_HAS_JEMALLOC AND NOT "jemalloc_off" IN_LIST test_LABELS)
        list(APPEND programs ${name}_jemalloc)
    endif()
    list(POP_FRONT test_VARIANTS variable)
    foreach(program IN LISTS programs)
        add_executable(${program} $<TARGET_OBJECTS:${name}_objects>)
        target_link_libraries(${program} PRIVATE errand_testing errand_test_support
            ${test_LIBRARIES})
        target_link_options(${program} PRIVATE ${errand_test_link})
        set_target_properties(${program} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/bin")
        if("smoke" IN_LIST test_LABELS)
            add_dependencies(smoke ${program})
        endif()
        if(NOT variable)
            errand_list_test(test ${program} ${test_TIMEOUT} "${test_LABELS}"
                "${test_ENVIRONMENT}" "$<TARGET_FILE:${program}>")
        endif()
        foreach(value IN LISTS test_VARIANTS)
            set(run ${program}_${value})
            add_custom_target(${run} DEPENDS ${program}) # to be built by its name
            errand_list_test(test ${run} ${test_TIMEOUT} "${test_LABELS}"
                "${test_ENVIRONMENT};${variable}=${value}" "$<TARGET_FILE:${program}>")
        endforeach()
    endforeach()
    if(TARGET ${name}_jemalloc)
        target_link_libraries(${name}_jemalloc PRIVATE errand_jemalloc)
    endif()
endfunction()

function(errand_command_test name)
    cmake_parse_arguments(PARSE_ARGV 1 test "SERIAL" "TIMEOUT" "COMMAND;LABELS;ENVIRONMENT")
    if(NOT test_TIMEOUT)
        set(test_TIMEOUT 120)
    endif()
    if(test_SERIAL)
        list(APPEND test_LABELS serial)
    endif()
    errand_list_test(command ${name} ${test_TIMEOUT} "${test_LABELS}" "${test_ENVIRONMENT}"
        ${test_COMMAND})
endfunction()

function(errand_fuzz_target name)
    add_executable(fuzz_${name} ${ARGN})
    target_link_libraries(fuzz_${name} PRIVATE errand_testing errand_warnings errand_sanitize)
    target_compile_definitions(fuzz_${name} PRIVATE _GNU_SOURCE=)
    add_dependencies(fuzz_all fuzz_${name})
    set_target_properties(fuzz_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
    if(ERRAND_LIBFUZZER)
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    else()
        target_sources(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}/fuzz/corpus_main.c")
    endif()
    errand_list_test(fuzz fuzz_${name} 300 "" "" "$<TARGET_FILE:fuzz_${name}>"
        "${PROJECT_SOURCE_DIR}/fuzz/${name}/corpus")
endfunction()

if(ERRAND_TESTS)
    if(NOT ERRAND_CMOCKA_INCLUDE OR NOT ERRAND_CMOCKA_LIBRARY)
        message(STATUS "cmocka not found: built without tests (install libcmocka-dev)")
        set(ERRAND_TESTS OFF)
        return()
    endif()
    add_library(errand_cmocka INTERFACE)
    target_include_directories(errand_cmocka SYSTEM INTERFACE "${ERRAND_CMOCKA_INCLUDE}")
    target_link_libraries(errand_cmocka INTERFACE "${ERRAND_CMOCKA_LIBRARY}")
    # Hundreds of programs hold the whole library each: here gcc and mold link one in half of the time, clang
    # and gold in two thirds.
    set(errand_test_link "")
    include(CheckLinkerFlag)
    set(linker mold)
    if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
        set(linker gold)
    endif()
    check_linker_flag(C -fuse-ld=${linker} ERRAND_LINKS_FASTER)
    if(ERRAND_LINKS_FASTER)
        set(errand_test_link -fuse-ld=${linker})
    endif()
    # A sanitizer looks at the library as it is built for it; the tests' own code need not be fast there.
    set(errand_test_compile "")
    if(ERRAND_SANITIZE)
        set(errand_test_compile -O0)
    endif()
    add_subdirectory("${PROJECT_SOURCE_DIR}/tests/support")
endif()
