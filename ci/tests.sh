#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/tests.sh PRESET [OPTION...]: builds the preset and runs its tests; options go to
# run_tests.py.  Results go to the file in ERRAND_RESULTS.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
ci/build.sh "$preset"
python3 ci/run_tests.py "build/$preset" --config "$preset" --results "$ERRAND_RESULTS" "$@"
