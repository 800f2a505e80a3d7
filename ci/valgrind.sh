#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/valgrind.sh: the tests labelled smoke, in the debug build, under valgrind.
set -eu
cd "$(dirname "$0")/.."
ci/build.sh dev smoke errand_lua
python3 ci/run_tests.py build/dev --config valgrind --results "$ERRAND_RESULTS" \
    --only-label smoke --slower 10 --wrap \
    "valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect --track-fds=no --fair-sched=try"
