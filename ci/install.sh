#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/install.sh: installs the release build, moves it, and builds programs against it as a
# user would: by the CMake package and by pkg-config, shared and static, in C and C++; runs the
# examples so, and loads the Lua module into a stock lua5.4.
set -eu
cd "$(dirname "$0")/.."
folder=$PWD/build/check/install
rm -rf "$folder"
mkdir -p "$folder"
ci/build.sh release
cmake --install build/release --prefix "$folder/first"
mv "$folder/first" "$folder/prefix"
prefix=$folder/prefix
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name errand.pc)")
LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name liberrand.so)")
export PKG_CONFIG_PATH LD_LIBRARY_PATH
status=0

result() { # NAME CODE
    if [ "$2" = 0 ]; then
        printf 'pass\tinstall\t%s\t\n' "$1" >>"$ERRAND_RESULTS"
    else
        echo "install: $1 failed"
        printf 'fail\tinstall\t%s\t%s\n' "$1" \
            "$(grep -m 1 -iE 'error|cannot|not ' "$folder/said" | tr '\t' ' ')" >>"$ERRAND_RESULTS"
        status=1
    fi
}

by_cmake() {
    cmake -G Ninja -S tests/install -B "$folder/consumer" -DCMAKE_PREFIX_PATH="$prefix" &&
        cmake --build "$folder/consumer" &&
        "$folder/consumer/shared" && "$folder/consumer/static"
}
# On a machine that has neither pkg-config's libffi nor libseccomp: who links the shared library needs none,
# and who asks for the static one hears what is missing.
by_cmake_alone() {
    alone() { # FOLDER COMPONENTS
        PKG_CONFIG_PATH= PKG_CONFIG_LIBDIR=$folder cmake -G Ninja -S tests/install/shared -B "$folder/$1" \
            -DCMAKE_PREFIX_PATH="$prefix" -DCOMPONENTS="$2"
    }
    for components in "" shared; do
        alone "shared_$components" "$components" && cmake --build "$folder/shared_$components" &&
            "$folder/shared_$components/shared" || return 1
    done
    ! alone refused static >"$folder/refused.txt" 2>&1 && grep -F "errand::static needs" "$folder/refused.txt"
}
by_pkg_config() {
    gcc -std=c17 -Wall -Wextra -Werror tests/install/consumer.c -o "$folder/by_pkg_config" \
        $(pkg-config --cflags --libs errand) && "$folder/by_pkg_config"
}
by_pkg_config_static() {
    gcc -std=c17 -Wall -Wextra -Werror tests/install/consumer.c \
        -o "$folder/by_pkg_config_static" $(pkg-config --cflags errand) \
        "$LD_LIBRARY_PATH/liberrand.a" $(pkg-config --libs libffi) -pthread && "$folder/by_pkg_config_static"
}
from_cxx() {
    g++ -std=c++11 -Wall -Wextra -Werror -x c++ tests/install/consumer.c -o "$folder/cxx" \
        -x none $(pkg-config --cflags --libs errand) && "$folder/cxx"
}
from_cxx_header() {
    printf '#include <errand/cxx.hpp>\nint main() { errand::contain([] {}); }\n' |
        g++ -std=c++17 -Wall -Wextra -Werror -x c++ - -o "$folder/cxx_header" \
            -x none $(pkg-config --cflags --libs errand) && "$folder/cxx_header"
}
# Each by the command that docs/building.md gives, and nothing that only gcc's own C knows.
examples() {
    gcc -std=c17 -pedantic -Wall -Wextra -Werror -shared -fPIC examples/plugin.c \
        -o "$folder/plugin.so" $(pkg-config --cflags errand) || return 1
    for example in examples/*.c; do
        [ "$example" != examples/plugin.c ] || continue
        gcc -std=c17 -pedantic -Wall -Wextra -Werror "$example" -o "$folder/example" \
            $(pkg-config --cflags --libs errand) -pthread || return 1
        if [ "$example" = examples/echo_server.c ]; then # a signal ends it
            timeout --preserve-status -s INT 1 "$folder/example" 0 || return 1
        else
            "$folder/example" "$folder/plugin.so" || return 1
        fi
    done
}
lua_module() {
    [ -e "$prefix/lib/lua/5.4/errand.so" ] || {
        echo "error: the Lua module is not installed"
        return 1
    }
    LUA_CPATH="$prefix/lib/lua/5.4/?.so" lua5.4 -e '
        local errand = require "errand"
        assert(errand.run(function()
            return errand.await(errand.spawn(function() return 42 end))
        end) == 42)'
}
# The worker program is found from each place that a file of the library is in.
sandboxes() {
    PATH="$prefix/bin:$PATH" errand call - labs 'i64 (i64)' -7 &&
        LUA_CPATH="$prefix/lib/lua/5.4/?.so" lua5.4 -e '
            local errand = require "errand"
            assert(errand.run(function()
                local c = errand.ffi.open(nil, { isolation = "process" })
                return c:fn("labs", "i64 (i64)")(-7)
            end) == 7)'
}
# A program that lies elsewhere and holds the library finds it from where the headers lay, or the package
# says where it is.
worker_path() {
    gcc -std=c17 -Wall -Wextra -Werror tests/install/sandboxed.c -o "$folder/sandboxed" \
        $(pkg-config --cflags errand) "$LD_LIBRARY_PATH/liberrand.a" \
        $(pkg-config --static --libs errand | sed "s/-lerrand//") && "$folder/sandboxed" &&
    "$folder/consumer/sandboxed" && "$folder/consumer/sandboxed" "$(cat "$folder/consumer/worker")" &&
        "$folder/consumer/sandboxed" "$(pkg-config --variable=errand_workerdir errand)/errand-worker"
}
# The shared library shows exactly what the public headers declare.
same_names() {
    python3 tests/lint/exported_names.py "$LD_LIBRARY_PATH/liberrand.so" include
}
# Nothing that is installed looks for something where it was built.
no_build_paths() {
    if grep -rlF "/include/errand/sandbox.h" "$prefix" --include='*.so*' --include='*.a' --include=errand \
        --include=errand-worker; then
        echo "error: these say where the headers lay"
        return 1
    fi
}
for test in by_cmake by_cmake_alone by_pkg_config by_pkg_config_static from_cxx from_cxx_header examples lua_module sandboxes worker_path same_names no_build_paths; do
    code=0
    $test >"$folder/said" 2>&1 || code=$?
    cat "$folder/said"
    result "$test" $code
done
exit $status
