# SPDX-License-Identifier: MIT
"""C files are as clang-format 14 lays them out by .clang-format; ci/format mends them."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import tree

report = tree.Report()
program = shutil.which("clang-format-14")
paths = tree.c_files(report.root)
if report.options.changed:
    changed = tree.changed(report.root)
    paths = [path for path in paths if path in changed]


def check(some):
    """What is wrong in some files; a process for each of them would take longest to start."""
    done = subprocess.run([program, "--style=file", "--dry-run", "-Werror", *some],
                          cwd=report.root, capture_output=True, text=True)
    return some, done.returncode, done.stderr


SAID = re.compile(r"^(.*?):(\d+):\d+: error: .*\[-Wclang-format-violations\]$", re.M)
if program is None:
    report.problem("lint_format", 1, "clang-format-14 is not there")
else:
    some = [paths[i:i + 32] for i in range(0, len(paths), 32)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for tried, code, message in pool.map(check, some):
            first = {}
            for path, line in SAID.findall(message):
                first.setdefault(os.path.relpath(path, report.root)
                                 if os.path.isabs(path) else path, int(line))
            for path, line in sorted(first.items()):
                report.problem(path, line, "not formatted; run ci/format")
            if code != 0 and not first:
                report.problem(tried[0], 1, "clang-format-14 failed: " + message[:200])
report.end()
