# SPDX-License-Identifier: MIT
"""A test's name is a sentence: at least three words, no number at its end, each used once in
its file; each test that is defined is also run."""
import re
import tree

# BOTH_ORDERS: tests/runtime/both.h.
RUN = re.compile(r"(?<!#define )\b(?:cmocka_unit_test\w*|BOTH_ORDERS)\s*\(\s*(\w+)")
DEFINED = re.compile(r"^static void\n(\w+)\(void \*\*state\)\n\{", re.M)
report = tree.Report()
for path in tree.c_files(report.root, "tests"):
    text = tree.read(report.root, path)
    bare = tree.code(text)
    run = []
    # #define WITH_WORLD(test) cmocka_unit_test_...(test, ...): such a macro runs tests too.
    macros = re.findall(r"#define (\w+)\((\w+)\)[ \\\n]*cmocka_unit_test\w*\(\s*\2\b", bare)
    runs = list(RUN.finditer(bare))
    for macro, argument in macros:
        runs = [match for match in runs if match.group(1) != argument]
        runs += [match for match in re.finditer(r"\b%s\((\w+)\)" % macro, bare)
                 if match.group(1) != argument]
    for match in runs:
        name = match.group(1)
        line = bare.count("\n", 0, match.start()) + 1
        words = [word for word in name.split("_") if word]
        if name in run:
            report.problem(path, line, "%s is run twice" % name)
        run.append(name)
        if len(words) < 3 or words[0] == "test" or re.fullmatch(r"test\d*|.*_\d+", name):
            report.problem(path, line, "%s is not a sentence" % name)
    for match in DEFINED.finditer(bare):
        if run and match.group(1) not in run:
            report.problem(path, bare.count("\n", 0, match.start()) + 2,
                           "%s is defined and not run" % match.group(1))
    if path.endswith("_test.c") and not run:
        report.problem(path, 1, "runs no test")
report.end()
