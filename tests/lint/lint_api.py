# SPDX-License-Identifier: MIT
"""Every ERRAND_API declaration is documented: the comment before it, or before the run of
declarations it stands in, names it or its run, and has Thread:, and Errors: if a declaration
of the run answers errand_status."""
import re
import tree

# A comment, then a run of declarations and type definitions up to the next comment.
NAME = re.compile(r"\b(errand_\w+)\s*\(")
report = tree.Report()


def declarations(bare):
    """Yields (line, text) of each ERRAND_API declaration in code without comments."""
    for match in re.finditer(r"\bERRAND_API\b[^;{]*[;{]", bare):
        before = bare[bare.rfind("\n", 0, match.start()) + 1:match.start()]
        if "#" not in before:
            yield match.start(), match.group()


for path in tree.c_files(report.root, "include"):
    text = tree.read(report.root, path)
    bare = tree.code(text)
    comments = [(match.start(), match.end(), match.group())
                for match in tree.TOKEN.finditer(text) if match.lastgroup == "block"
                # A remark at a line's end belongs to that line, not to what follows.
                and not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()]
    runs = {}
    for at, declaration in declarations(bare):
        above = [comment for comment in comments if comment[1] <= at]
        runs.setdefault(above[-1] if above else None, []).append((at, declaration))
    for comment, run in runs.items():
        line = bare.count("\n", 0, run[0][0]) + 1
        named = [NAME.search(declaration) for _, declaration in run]
        names = [match.group(1) if match else "?" for match in named]
        if comment is None or comment[0] == 0 and len(comments) == 1:
            report.problem(path, line, "%s has no comment" % ", ".join(names))
            continue
        words = comment[2]
        missing = [name for name in names
                   if not re.search(r"\b%s\b" % re.escape(name), words)]
        # One declaration may be described without its name; of several each is named.
        if missing and len(names) > 1:
            report.problem(path, line, "the comment above does not name " +
                           ", ".join(missing))
        if "Thread:" not in words:
            report.problem(path, line, "%s: the comment has no Thread:" % names[0])
        answers = any(re.search(r"\berrand_status\s+errand_\w+\s*\(", declaration)
                      for _, declaration in run)
        if answers and "Errors:" not in words:
            report.problem(path, line, "%s: the comment has no Errors:" % names[0])
report.end()
