# SPDX-License-Identifier: MIT
"""ci/run_tests.py counts what programs say and what they do not say: small programs, made
here, that pass, fail, skip, crash, hang, lie or say nothing."""
import os
import subprocess
import sys
import tempfile
import tree

RUNNER = os.path.join(tree.ROOT, "ci", "run_tests.py")
RUN, OK, FAILED = "echo '[ RUN      ] %s'", "echo '[       OK ] %s'", "echo '[  FAILED  ] %s'"
SKIP = "echo '[  REASON  ] %s: not here'; echo '[  SKIPPED ] %s'"


def said(*lines):
    return "; ".join(lines)


# what the program does, its kind, the statuses that it must count as
CASES = [
    (said(RUN % "a_b", OK % "a_b", RUN % "c_d", OK % "c_d"), "test", ["pass", "pass"]),
    (said(RUN % "a_b", "printf 'noise '", OK % "a_b"), "test", ["pass"]),
    (said(RUN % "a_b", FAILED % "a_b", "echo '[  FAILED  ] 1 test(s), listed below:'",
          FAILED % "a_b", "exit 1"), "test", ["fail"]),
    (said(RUN % "a_b", FAILED % "a_b", "exit 0"), "test", ["fail"]),
    (said(RUN % "a_b", SKIP % ("a_b", "a_b")), "test", ["skip"]),
    (said(RUN % "a_b", "echo '[  SKIPPED ] a_b'"), "test", ["fail"]),
    (said(RUN % "a_b", OK % "a_b", RUN % "c_d", "kill -SEGV $$"), "test", ["pass", "fail"]),
    (said(RUN % "a_b", "exit 0"), "test", ["fail"]),
    (said(RUN % "a_b", RUN % "c_d", OK % "c_d"), "test", ["fail", "pass"]),
    (said(RUN % "a_b", OK % "a_b", "exit 66"), "test", ["pass", "fail"]),
    (said(RUN % "a_b", "sleep 60"), "test", ["fail"]),
    (said(RUN % "a_b", OK % "a_b", "sleep 60 & exit 0"), "test", ["pass"]),
    ("exit 0", "test", ["fail"]),
    ("exit 0", "fuzz", ["fail"]),
    ("exit 0", "command", ["pass"]),
    ("exit 1", "command", ["fail"]),
    ("/nonexistent/program", "command", ["fail"]),
]

report = tree.Report()
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "tests.list"), "w") as file:
        for number, (script, kind, _) in enumerate(CASES):
            file.write("\t".join((kind, "program%02d" % number, "1", "", "", "sh", "-c",
                                  script)) + "\n")
    results = os.path.join(folder, "results")
    done = subprocess.run([sys.executable, RUNNER, folder, "--config", "x", "--results",
                           results, "--jobs", "4", "--kinds", "test,command,fuzz"], capture_output=True, text=True)
    counted = {}
    with open(results) as file:
        for line in file:
            status, _, name, _ = line.rstrip("\n").split("\t")
            counted.setdefault(name.split("/")[0], []).append(status)
    if done.returncode != 1:
        report.problem("ci/run_tests.py", 1, "answers %d" % done.returncode)
    for number, (script, kind, expected) in enumerate(CASES):
        found = counted.get("program%02d" % number, [])
        if found != expected:
            report.problem("ci/run_tests.py", 1, "counts %s, not %s: %s" %
                           (found, expected, script))
report.end()
