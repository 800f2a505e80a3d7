# SPDX-License-Identifier: MIT
"""Every file says its licence in its first lines; C comments are /* */, never //."""
import tree

SPDX = "SPDX-License-Identifier: MIT"
MARKED = (".c", ".h", ".hpp", ".py", ".sh", ".cmake", ".lua", "CMakeLists.txt")
report = tree.Report()
for path in tree.files(report.root):
    if not path.endswith(MARKED):
        continue
    text = tree.read(report.root, path)
    if SPDX not in "\n".join(text.splitlines()[:2]):
        report.problem(path, 1, "does not begin with " + SPDX)
    if path.endswith(tree.C_FILES):
        for kind, token, line in tree.tokens(text):
            if kind == "line":
                report.problem(path, line, "comment with //; write /* */")
report.end()
