#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/corpora.sh: every file of every fuzz target's corpus, under clang's sanitizers.
set -eu
cd "$(dirname "$0")/.."
ci/build.sh clang-asan fuzz_all
python3 ci/run_tests.py build/clang-asan --config corpora --results "$ERRAND_RESULTS" \
    --kinds fuzz --slower 2
