# SPDX-License-Identifier: MIT
"""One file knows jemalloc: src/core/mem*.c."""
import re
import tree

NAME = re.compile(r"\b(?:[msrxd]?d?allocx|nallocx|mallctl\w*|mallocx|MALLOCX_\w+|"
                  r"\w*jemalloc/\w+|je_\w+)\b")
report = tree.Report()
for path in tree.c_files(report.root, "src", "hosts", "tools", "examples"):
    if re.match(r"src/core/mem\w*\.c$", path):
        continue
    text = tree.without(tree.read(report.root, path), "block", "line")
    for match in NAME.finditer(text):
        report.problem(path, text.count("\n", 0, match.start()) + 1,
                       "%s: only src/core/mem*.c may name it" % match.group())
report.end()
