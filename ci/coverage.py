#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replays the corpora of fuzz/ops, fuzz/choice, fuzz/text and fuzz/ring in the coverage build: how many of
the lines of each folder do they reach?

    ci/coverage.py [--missed] [FOLDER]      FOLDER instead of fuzz/ops/corpus

One result line per folder goes to the file in ERRAND_RESULTS, if that is set; a folder below
the limit fails.  With --missed the lines that are not reached are printed too.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "coverage")
OBJECTS = os.path.join(BUILD, "CMakeFiles", "errand_testing.dir", "src")
FOLDERS = ("registrar", "inbox", "dispatch", "scheduler")
LEAST = 90.0
TARGETS = ("ops", "choice", "text", "ring")
# They are left out of their folder's figure, told as skipped, and fail here once they are reached.
NOT_PLAYED = {
    "src/dispatch/fault.c": "faults are caught on threads of a pool; tests/hostile has them",
    "src/dispatch/fault.h": "the same",
    "src/dispatch/interrupt.c": "only threads of a pool send signals, and no input decides those",
    "src/dispatch/module.c": "it names the place of a fault",
    "src/dispatch/wait_fd.c": "what a descriptor does is no input of a program",
}
# They are left out too: on a busy machine the same corpora reach less of them than on an idle one.
TIMED = {
    "src/inbox/park.c": "how long a consumer looks before it sleeps hangs on the clock and on who "
                        "runs beside it; tests/model and tests/runtime park on purpose",
}


def files_below(folder, ending):
    for path, _, names in os.walk(folder):
        yield from (os.path.join(path, name) for name in sorted(names)
                    if name.endswith(ending))


def replay(corpus):
    for path in list(files_below(BUILD, ".gcda")):
        os.remove(path)  # of earlier runs: counts would be added
    for target in TARGETS:
        folder = os.path.join(ROOT, "fuzz", target, "corpus")
        subprocess.run([os.path.join(BUILD, "fuzz", "fuzz_" + target),
                        corpus if corpus and target == "ops" else folder],
                       stdout=subprocess.DEVNULL, check=True)


def count(folder):
    """Answers {(file, line): how often} of the sources of one folder."""
    notes = list(files_below(os.path.join(OBJECTS, folder), ".gcno"))
    with tempfile.TemporaryDirectory() as place:  # gcov leaves files where it is called
        output = subprocess.run(["gcov", "--json-format", "--stdout"] + notes, cwd=place,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                check=True).stdout.decode()
    lines = {}
    for text in filter(None, output.splitlines()):
        for source in json.loads(text)["files"]:
            path = os.path.relpath(source["file"], ROOT)
            if not path.startswith("src/%s/" % folder):
                continue
            for line in source["lines"]:
                key = path, line["line_number"]
                lines[key] = lines.get(key, 0) + line["count"]
    return lines


def figure_of(lines):
    reached = sum(times > 0 for times in lines.values())
    percent = 100.0 * reached / len(lines) if lines else 0.0
    return percent, "%d of %d lines, %.1f %%" % (reached, len(lines), percent)


def print_missed(lines):
    for (path, number), times in sorted(lines.items()):
        if times == 0:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                print("    %s:%d: %s" % (path, number, file.read().splitlines()[number - 1]))


def main():
    subprocess.run([os.path.join(ROOT, "ci", "build.sh"), "coverage"] +
                   ["fuzz_" + target for target in TARGETS], check=True)
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    replay(named[0] if named else None)
    results = []
    for folder in FOLDERS:
        lines = count(folder)
        played = {key: times for key, times in lines.items()
                  if key[0] not in NOT_PLAYED and key[0] not in TIMED}
        percent, figure = figure_of(played)
        print("src/%-10s %s; with all files %s" % (folder, figure, figure_of(lines)[1]))
        if "--missed" in sys.argv:
            print_missed(lines)
        results.append(("pass", folder, "") if percent >= LEAST else
                       ("fail", folder, "%s, at least %g %%" % (figure, LEAST)))
        for path in sorted({path for path, _ in lines} & (set(NOT_PLAYED) | set(TIMED))):
            percent, figure = figure_of({key: times for key, times in lines.items()
                                         if key[0] == path})
            print("    %s %s" % (path, figure))
            why = NOT_PLAYED.get(path) or TIMED[path]
            results.append(("skip", path, "%s: %s" % (why, figure))
                           if percent < LEAST or path in TIMED else
                           ("fail", path, "it is reached: take it off NOT_PLAYED"))
    if os.environ.get("ERRAND_RESULTS"):
        with open(os.environ["ERRAND_RESULTS"], "a", encoding="utf-8") as file:
            file.writelines("%s\tcoverage\t%s\t%s\n" % result for result in results)
    return any(status == "fail" for status, _, _ in results)


if __name__ == "__main__":
    sys.exit(main())
