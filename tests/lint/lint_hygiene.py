# SPDX-License-Identifier: MIT
"""Nothing is left unfinished, no path of the machine it was written on, no tabs or trailing
blanks, and every text ends with a line end."""
import re
import tree

# Put together, so that this file does not name what it looks for.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX",
                                          "HA" + "CK")) + r")\b")
PATHS = re.compile(r"(?<![\w.$}])/(?:" + "|".join(("wo" + "rk", "fa" + "rm", "ro" + "ot",
                   "tmp/pe" + "ers", "tmp/rese" + "arch", "tmp/stu" + "dio")) + r")/")
EMPTY = re.compile(r"\bassert_true\(\s*(?:1|true)\s*\)|(?<![\w_])skip\(\s*\)")
BINARY = (".png", ".jpg", ".gz", ".pdf")

report = tree.Report()
for path in tree.files(report.root):
    if path.endswith(BINARY) or "/corpus/" in path:
        continue
    text = tree.read(report.root, path)
    if "\0" in text:
        continue
    if text and not text.endswith("\n"):
        report.problem(path, text.count("\n") + 1, "no line end at the end")
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            report.problem(path, number, "unfinished: " + line.strip())
        if PATHS.search(line):
            report.problem(path, number, "a path of one machine: " + line.strip())
        if path.endswith(tree.C_FILES) and EMPTY.search(line):
            report.problem(path, number, "cannot fail: " + line.strip())
        if line != line.rstrip() and not path.endswith(".md"):
            report.problem(path, number, "blanks at the line's end")
        if "\t" in line and path.endswith(tree.C_FILES + (".py", ".cmake", ".lua")):
            report.problem(path, number, "a tab")
report.end()
