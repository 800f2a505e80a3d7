#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/install.sh: installs the release build, moves it, and builds programs against it as a
# user would: by the CMake package and by pkg-config, shared and static, in C and C++.
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
        printf 'fail\tinstall\t%s\tsee above\n' "$1" >>"$ERRAND_RESULTS"
        status=1
    fi
}

by_cmake() {
    cmake -G Ninja -S tests/install -B "$folder/consumer" -DCMAKE_PREFIX_PATH="$prefix" &&
        cmake --build "$folder/consumer" &&
        "$folder/consumer/shared" && "$folder/consumer/static"
}
by_pkg_config() {
    gcc -std=c17 -Wall -Wextra -Werror tests/install/consumer.c -o "$folder/by_pkg_config" \
        $(pkg-config --cflags --libs errand) && "$folder/by_pkg_config"
}
by_pkg_config_static() {
    gcc -std=c17 -Wall -Wextra -Werror tests/install/consumer.c \
        -o "$folder/by_pkg_config_static" $(pkg-config --cflags errand) \
        "$LD_LIBRARY_PATH/liberrand.a" -pthread && "$folder/by_pkg_config_static"
}
from_cxx() {
    g++ -std=c++11 -Wall -Wextra -Werror -x c++ tests/install/consumer.c -o "$folder/cxx" \
        -x none $(pkg-config --cflags --libs errand) && "$folder/cxx"
}
# The shared library shows exactly what the public headers declare.
same_names() {
    python3 tests/lint/exported_names.py "$LD_LIBRARY_PATH/liberrand.so" include
}
for test in by_cmake by_pkg_config by_pkg_config_static from_cxx same_names; do
    code=0
    $test || code=$?
    result "$test" $code
done
exit $status
