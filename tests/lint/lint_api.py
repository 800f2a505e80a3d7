# SPDX-License-Identifier: MIT
"""Every ERRAND_API declaration is documented.  A comment stands before it, or before the run
of declarations that it belongs to, and says

  - from which thread it may be called: "Thread: ..." or [owner], [any], [worker], [signal]; a
    remark at the declaration, the section's head (/* ---- ... */) or "All ... are [owner]" in
    the file's first comment will do;
  - where it answers errand_status, which ones: "Errors: ..." or their names."""
import re
import tree

NAME = re.compile(r"\b(errand_\w+)\s*\(")
THREAD = re.compile(r"\bThread:|\[(?:owner|any|worker|signal)\b")
ERRORS = re.compile(r"\bErrors\b|\bE[A-Z]{3,}\b")
FOR_ALL = re.compile(r"\bAll\b[^.]*\[(?:owner|any|worker|signal)\b")
ANSWERS = re.compile(r"\berrand_status\s+errand_\w+\s*\(")
report = tree.Report()


def comments_of(text, bare):
    """Yields (start, end, words, is a remark at a line's end) outside of braces."""
    for match in tree.TOKEN.finditer(text):
        if match.lastgroup != "block":
            continue
        before = bare[:match.start()]
        if before.count("{") == before.count("}"):
            line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
            yield match.start(), match.end(), match.group(), bool(line.strip())


for path in tree.c_files(report.root, "include"):
    text = tree.read(report.root, path)
    bare = tree.code(text)
    comments = list(comments_of(text, bare))
    remarks = [comment for comment in comments if comment[3]]
    heads = [comment for comment in comments if not comment[3]]
    # The licence line comes first, then what the file is for.
    purpose = heads[1][2] if len(heads) > 1 else ""
    runs = {}
    for match in re.finditer(r"\bERRAND_API\b[^;{]*[;{]", bare):
        if "#" in bare[bare.rfind("\n", 0, match.start()) + 1:match.start()]:
            continue
        above = [head for head in heads if head[1] <= match.start()]
        runs.setdefault(above[-1] if len(above) > 2 else None, []).append(match)
    for comment, run in runs.items():
        line = bare.count("\n", 0, run[0].start()) + 1
        found = [NAME.search(match.group()) for match in run]
        names = ", ".join(match.group(1) if match else "?" for match in found)
        if comment is None:
            report.problem(path, line, "no comment above: " + names)
            continue
        words = comment[2] + " ".join(
            remark[2] for remark in remarks
            if run[0].start() <= remark[0] <= bare.find("\n", run[-1].end()))
        section = [head[2] for head in heads
                   if head[1] <= run[0].start() and head[2].startswith("/* ----")]
        if not (THREAD.search(words) or section and THREAD.search(section[-1])
                or FOR_ALL.search(purpose)):
            report.problem(path, line, "from which thread? " + names)
        if any(ANSWERS.search(match.group()) for match in run) and not ERRORS.search(words):
            report.problem(path, line, "which errors? " + names)
report.end()
