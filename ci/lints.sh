#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/lints.sh [--changed]: each file tests/lint/lint_*.py is one test; --changed lets slow
# ones look at changed files only.  The first line that is no note stands in the result.
cd "$(dirname "$0")/.." || exit 1
status=0
said=$(mktemp)
for lint in tests/lint/lint_*.py; do
    name=${lint##*/lint_}
    name=${name%.py}
    if python3 "$lint" "$@" >"$said" 2>&1; then
        printf 'pass\tlint\t%s\t\n' "$name" >>"$ERRAND_RESULTS"
    else
        printf 'fail\tlint\t%s\t%s\n' "$name" \
            "$(grep -v '^note: ' "$said" | sed -n '1{s/\t/ /g;p}')" >>"$ERRAND_RESULTS"
        status=1
    fi
    cat "$said"
done
rm -f "$said"
exit $status
