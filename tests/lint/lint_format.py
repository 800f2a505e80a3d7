# SPDX-License-Identifier: MIT
"""C files are as clang-format 14 lays them out by .clang-format; ci/format mends them."""
import concurrent.futures
import os
import shutil
import subprocess
import tree

report = tree.Report()
program = shutil.which("clang-format-14")
paths = tree.c_files(report.root)
if report.options.changed:
    changed = tree.changed(report.root)
    paths = [path for path in paths if path in changed]


def check(path):
    done = subprocess.run([program, "--style=file", "--dry-run", "-Werror", path],
                          cwd=report.root, capture_output=True, text=True)
    return path, done.returncode, done.stderr


if program is None:
    report.problem("lint_format", 1, "clang-format-14 is not there")
else:
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, code, message in pool.map(check, paths):
            if code != 0:
                first = message.splitlines()[0] if message else ""
                parts = first.split(":")
                line = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 1
                report.problem(path, line, "not formatted; run ci/format")
report.end()
