#!/bin/sh
# SPDX-License-Identifier: MIT
# ci/lints.sh [--changed]: each file tests/lint/lint_*.py is one test; --changed lets slow
# ones look at changed files only.
cd "$(dirname "$0")/.." || exit 1
status=0
for lint in tests/lint/lint_*.py; do
    name=${lint##*/lint_}
    name=${name%.py}
    if python3 "$lint" "$@"; then
        printf 'pass\tlint\t%s\t\n' "$name" >>"$ERRAND_RESULTS"
    else
        printf 'fail\tlint\t%s\tsee above\n' "$name" >>"$ERRAND_RESULTS"
        status=1
    fi
done
exit $status
