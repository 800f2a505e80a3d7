# SPDX-License-Identifier: MIT
# INTERFACE targets that carry every flag: errand_warnings, errand_sanitize, errand_jemalloc.

add_library(errand_warnings INTERFACE)
target_compile_options(errand_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
    $<$<BOOL:${ERRAND_WERROR}>:-Werror>)
# errand's own code does not say where the headers lie that it was compiled with (errand/sandbox.h).
target_compile_definitions(errand_warnings INTERFACE ERRAND_BUILDING=1)
if(ERRAND_THREAD_SAFETY)
    # The second warning finds atomic accesses without a named order.
    target_compile_options(errand_warnings INTERFACE
        -Wthread-safety -Watomic-implicit-seq-cst)
endif()

# Everything that is compiled or linked here gets the same instrumentation.
add_library(errand_sanitize INTERFACE)
# For generator expressions: the names of two sanitizers have a comma between them.
set(ERRAND_SANITIZED 0)
if(ERRAND_SANITIZE)
    set(ERRAND_SANITIZED 1)
    target_compile_options(errand_sanitize INTERFACE
        -fsanitize=${ERRAND_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(errand_sanitize INTERFACE -fsanitize=${ERRAND_SANITIZE})
endif()
if(ERRAND_LIBFUZZER)
    target_compile_options(errand_sanitize INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(ERRAND_COVERAGE)
    target_compile_options(errand_sanitize INTERFACE --coverage -fprofile-update=atomic)
    target_link_options(errand_sanitize INTERFACE --coverage)
endif()

# For programs that want arenas: the library finds jemalloc by weak reference, so a program
# that refers to none of its names itself must keep the linker from leaving it out.
# Sanitizers see nothing of jemalloc's blocks, so there it is never linked.
add_library(errand_jemalloc INTERFACE)
set(ERRAND_HAS_JEMALLOC OFF)
if(ERRAND_JEMALLOC AND NOT ERRAND_SANITIZE)
    find_library(ERRAND_JEMALLOC_LIBRARY jemalloc)
    if(ERRAND_JEMALLOC_LIBRARY)
        set(ERRAND_HAS_JEMALLOC ON)
        target_link_options(errand_jemalloc INTERFACE
            "SHELL:-Wl,--push-state,--no-as-needed ${ERRAND_JEMALLOC_LIBRARY} -Wl,--pop-state")
    else()
        message(STATUS "jemalloc not found: programs are built without it")
    endif()
endif()
