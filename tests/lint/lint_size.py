# SPDX-License-Identifier: MIT
"""Files of at most 600 lines (400 is the aim), functions of at most 60."""
import tree

FILE_AIM, FILE_MAX, FUNCTION_MAX = 400, 600, 60
report = tree.Report()
for path in tree.c_files(report.root):
    text = tree.read(report.root, path)
    lines = text.splitlines()
    if len(lines) > FILE_MAX:
        report.problem(path, FILE_MAX, "%d lines, more than %d" % (len(lines), FILE_MAX))
    elif len(lines) > FILE_AIM:
        report.note("%s: %d lines; is it still one thing?" % (path, len(lines)))
    # A definition's brace stands alone in the first column, as the format says.
    start = None
    for number, line in enumerate(tree.code(text).splitlines(), 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}"):
            if start is not None and number - start - 1 > FUNCTION_MAX:
                report.problem(path, start, "function of %d lines, more than %d" %
                               (number - start - 1, FUNCTION_MAX))
            start = None
report.end()
