#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/compile.sh PRESET: a build without warnings is one test.
set -eu
cd "$(dirname "$0")/.."
if ci/build.sh "$1"; then
    printf 'pass\t%s\tbuild\t\n' "$1" >>"$ERRAND_RESULTS"
else
    printf 'fail\t%s\tbuild\tdoes not compile\n' "$1" >>"$ERRAND_RESULTS"
    exit 1
fi
