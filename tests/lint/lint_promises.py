# SPDX-License-Identifier: MIT
"""docs/promises.md is complete and in order; each promise that is met is cited by a test.

A row is  | number | one sentence | status |  with status open, met or "later: reason", or, if
a part comes later, "open, later: reason" or "met, later: reason".  A citation is the number in
a file of tests/ or fuzz/ (not in this folder, not in mutants)."""
import collections
import re
import tree

LETTERS = "ODISLF"  # in this order
LAST = {"O": 80, "D": 152, "I": 24, "S": 28, "L": 10, "F": 41}
EXPECTED = [letter + str(n) for letter in LETTERS for n in range(1, LAST[letter] + 1)]
CITED = re.compile(r"(?<![\w-])[%s]\d{1,3}\b" % LETTERS)
PAGE = "docs/promises.md"

report = tree.Report()
rows = tree.promises(report.root)
seen = collections.Counter(row.number for row in rows)
for number in EXPECTED:
    if number not in seen:
        report.problem(PAGE, 1, "%s is missing" % number)
for row in rows:
    if seen[row.number] > 1:
        report.problem(PAGE, row.line, "%s stands there twice" % row.number)
    if row.status not in ("open", "met", "later"):
        report.problem(PAGE, row.line, "%s: status %r" % (row.number, row.status))
    if row.status == "later" and not row.reason:
        report.problem(PAGE, row.line, "%s: later needs a reason" % row.number)
    if not row.sentence.endswith("."):
        report.problem(PAGE, row.line, "%s is not a sentence" % row.number)
order = [(LETTERS.find(row.number[0]), int(row.number[1:])) for row in rows]
if order != sorted(order):
    report.problem(PAGE, 1, "the rows are not in order")

cited = collections.defaultdict(set)
for path in tree.files(report.root):
    if path.startswith(("tests/lint/", "tests/mutants/")) or "/corpus/" in path:
        continue
    if path.startswith(("tests/", "fuzz/")):
        for number in CITED.findall(tree.read(report.root, path)):
            cited[number].add(path)
known = set(seen)
for number in sorted(set(cited) - known):
    if number[0] == "O":
        report.problem(sorted(cited[number])[0], 1, "cites %s, which nobody promised" % number)
for row in rows:
    if row.status == "met" and row.number not in cited:
        report.problem(PAGE, row.line, "%s is met, but no test cites it" % row.number)
counts = collections.Counter(row.status for row in rows)
report.note("promises: %s" % ", ".join("%d %s" % (counts[word], word)
                                       for word in ("met", "open", "later")))
still_open = [row.number for row in rows if row.status == "open"]
report.note("open and cited: " + ", ".join(n for n in still_open if n in cited))
report.note("open and not cited: " + ", ".join(n for n in still_open if n not in cited))
report.end()
