# SPDX-License-Identifier: MIT
"""One file knows jemalloc: src/core/arena.c."""
import re
import tree

NAME = re.compile(r"\b(?:[msrxd]?d?allocx|nallocx|mallctl\w*|mallocx|MALLOCX_\w+|"
                  r"\w*jemalloc/\w+|je_\w+)\b")
report = tree.Report()
for path in tree.c_files(report.root, "src", "hosts", "tools", "examples"):
    if path == "src/core/arena.c":
        continue
    text = tree.without(tree.read(report.root, path), "block", "line")
    for match in NAME.finditer(text):
        report.problem(path, text.count("\n", 0, match.start()) + 1,
                       "%s: only src/core/arena.c may name it" % match.group())
report.end()
