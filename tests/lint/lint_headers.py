# SPDX-License-Identifier: MIT
"""Each public header compiles alone, as C17 by gcc and clang and as C++11 and C++17, with
ERRAND_SPEC_INIT where it has that, and refuses to compile with -fshort-enums, which would
change the layout of what it declares."""
import os
import subprocess
import tree

report = tree.Report()
include = os.path.join(report.root, "include")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
            "-Wmissing-field-initializers", "-Werror"]
CASES = [
    ("gcc", ["gcc", "-std=c17", "-Wstrict-prototypes", "-x", "c"], True),
    ("clang", ["clang-14", "-std=c17", "-Wstrict-prototypes", "-x", "c"], True),
    ("C++11", ["g++", "-std=c++11", "-Wzero-as-null-pointer-constant", "-x", "c++"], True),
    ("C++17", ["g++", "-std=c++17", "-Wzero-as-null-pointer-constant", "-x", "c++"], True),
    ("clang, C++17", ["clang++-14", "-std=c++17", "-x", "c++"], True),
    ("-fshort-enums", ["gcc", "-std=c17", "-fshort-enums", "-x", "c"], False),
]
# In a header that names one the macro must stand for a whole spec.
USE = """#ifdef ERRAND_SPEC_INIT
int errand_lint(void);
int
errand_lint(void)
{
    errand_spec spec = ERRAND_SPEC_INIT;
    return spec.struct_size != sizeof spec || spec.held_job || spec.trace_id;
}
#endif
"""
for path in tree.c_files(report.root, "include"):
    name = os.path.relpath(path, "include")
    # Twice, so that its guard is tried too.
    source = '#include "%s"\n#include "%s"\n%s' % (name, name, USE)
    for label, command, should_compile in CASES:
        if path.endswith(".hpp") and "C++" not in label:
            continue
        done = subprocess.run(command + WARNINGS + ["-fsyntax-only", "-I", include, "-"],
                              input=source, capture_output=True, text=True)
        if should_compile and done.returncode != 0:
            report.problem(path, 1, "does not stand alone (%s):\n%s" %
                           (label, done.stderr[:2000]))
        elif not should_compile and done.returncode == 0:
            report.problem(path, 1, "compiles with " + label)
report.end()
