#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/build.sh PRESET [TARGET...]: configures where needed and builds into build/PRESET.
# Further cmake arguments may be given in ERRAND_CMAKE_ARGUMENTS.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
preset=$1
shift
folder=$root/build/$preset
cd "$root"

# A tree that was moved or copied carries a cache of another place: start anew.
if [ -e "$folder/CMakeCache.txt" ] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
    rm -rf "$folder"
fi
# ninja itself configures again when a CMakeLists.txt changes, but does not see presets.
if [ ! -e "$folder/build.ninja" ] || [ -n "${ERRAND_CMAKE_ARGUMENTS:-}" ] ||
    [ -n "$(find CMakePresets.json -newer "$folder/build.ninja")" ]; then
    # Word splitting is wanted: several arguments may be given.
    cmake --preset "$preset" ${ERRAND_CMAKE_ARGUMENTS:-}
    touch "$folder/build.ninja"
fi
if [ $# = 0 ]; then
    exec cmake --build "$folder"
fi
exec cmake --build "$folder" --target "$@"
