#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/fuzz.sh SECONDS: each target searches for so long, from its corpus, in a copy of it.
set -eu
cd "$(dirname "$0")/.."
seconds=$1
ci/build.sh fuzz fuzz_all
status=0
# The sanitizers fail at start where mappings are spread over more than 28 bits.
without_randomness=
if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ]; then
    without_randomness="setarch $(uname -m) -R"
fi
for program in build/fuzz/fuzz/fuzz_*; do
    [ -x "$program" ] || continue
    name=${program##*/fuzz_}
    found=build/check/fuzz/$name
    mkdir -p "$found/corpus"
    if $without_randomness "$program" -max_total_time="$seconds" -timeout=20 -print_final_stats=1 \
        -artifact_prefix="$found/" "$found/corpus" "fuzz/$name/corpus" \
        >"$found/log" 2>&1; then
        printf 'pass\tfuzz\t%s\t\n' "$name" >>"$ERRAND_RESULTS"
    else
        printf 'fail\tfuzz\t%s\tsee %s/log\n' "$name" "$found" >>"$ERRAND_RESULTS"
        tail -n 60 "$found/log"
        status=1
    fi
done
exit $status
