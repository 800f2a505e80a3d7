# SPDX-License-Identifier: MIT
"""Each mutant still applies: its text to find stands once in its file, and its tests exist.  Each
promise that is met has one."""
import os
import re
import sys
import tree

sys.path.insert(0, os.path.join(tree.ROOT, "ci"))
import mutants  # noqa: E402

FOLDER = "tests/mutants/"
report = tree.Report()
listed = tree.files(report.root)
named = set()
for path in listed:
    if os.path.basename(path) == "CMakeLists.txt":
        text = tree.read(report.root, path)
        named.update(re.findall(r"errand_(?:command_)?test\(\s*([\w${}]+)", text))
broken = set()
for path in listed:
    if not path.startswith(FOLDER) or not path.endswith(".mutant"):
        continue
    try:
        mutant = mutants.read_mutant(os.path.join(report.root, path))
    except ValueError as error:
        report.problem(path, 1, str(error))
        continue
    broken.add(mutant["promise"])
    if mutant["file"] not in listed:
        report.problem(path, 1, "there is no %s" % mutant["file"])
        continue
    times = mutants.occurrences(mutant, tree.read(report.root, mutant["file"]))
    if times != 1:
        report.problem(path, 1, "%s has the text to find %d times" % (mutant["file"], times))
    for test in mutant["tests"].split():
        if not any(re.fullmatch(re.sub(r"\\\$\\\{\w+\\\}", r"\\w+", re.escape(name)), test)
                   for name in named):
            report.problem(path, 1, "there is no test %s" % test)
for row in tree.promises(report.root):
    if row.status == "met" and row.number not in broken:
        report.problem("docs/promises.md", row.line,
                       "%s is met, but no mutant breaks it" % row.number)
report.end()
