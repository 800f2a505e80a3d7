# SPDX-License-Identifier: MIT
"""Each lint finds what it is for, and is quiet about what is right: small trees, made here."""
import os
import shutil
import subprocess
import sys
import tempfile
import tree

C = "/* SPDX-License-Identifier: MIT */\n"
HEAD = C + "/* a: what this is for. */\n"
ROWS = "".join("| %s%d | A sentence. | open |\n" % (letter, n) for letter, last in
               (("O", 80), ("D", 152), ("I", 24), ("S", 28), ("L", 10), ("F", 41))
               for n in range(1, last + 1))
BLOCK = ("/* word: its use.  Writers: one.  Readers: all.  Order: release.  Pairs: a-word.\n"
         " * Why: x. */\n")
ERRORS = (HEAD + "/* errand_do: x.  Thread: [any].  Errors: EINVAL · EBUSY. */\n"
          "ERRAND_API errand_status errand_do(int a);\n")
ERRORS_ROW = '{"errand_do", call_do, 1},\n'
UNFINISHED = "TO" + "DO"
MACHINE = "/" + "work/x"
MUTANT = {"tests/mutants/O1-a.mutant": "promise: O1\nfile: src/core/a.c\nfind: int a;\n"
                                       "replace: int b;\ntests: core_a\n",
          "tests/core/CMakeLists.txt": "errand_test(core_a a_test.c)\n",
          "src/core/a.c": C + "int a;\n"}


def test_file(name, body="(void)state;"):
    return (C + "static void\n%s(void **state)\n{\n    %s\n}\n"
            "int x = cmocka_unit_test(%s);\n" % (name, body, name))


# lint, does it complain?, the tree
CASES = [
    ("layering", True, {"src/core/a.c": C + '#include "runtime/runtime.h"\n'}),
    ("layering", True, {"src/workers/a.c": C + '#include "registrar/registrar.h"\n'}),
    ("layering", True, {"tools/a.c": C + '#include "core/core.h"\n'}),
    ("layering", True, {"src/core/util.c": C}),
    ("layering", False, {"src/runtime/a.c": C + '#include "core/core.h"\n'
                                                '#include "errand/base.h"\n'}),
    ("layering", False, {"src/core/a.c": C + '/* #include "runtime/runtime.h" */\n'}),
    ("comments", True, {"src/core/a.c": C + "int a; // no\n"}),
    ("comments", True, {"src/core/a.c": "int a;\n"}),
    ("comments", False, {"src/core/a.c": C + 'char *a = "http://x";\n'}),
    ("size", True, {"src/core/a.c": C + "int a;\n" * 700}),
    ("size", True, {"src/core/a.c": C + "void\nf(void)\n{\n" + "    g();\n" * 61 + "}\n"}),
    ("size", False, {"src/core/a.c": C + "void\nf(void)\n{\n" + "    g();\n" * 60 + "}\n"}),
    ("atomics", True, {"src/core/a.c": C + "int f(void) { return atomic_load(&x); }\n"}),
    ("atomics", True, {"src/core/a.c": C + "void f(void) { atomic_thread_fence(1); }\n"}),
    ("atomics", True, {"src/core/a.h": C + "struct s {\n    _Atomic uint64_t word;\n};\n"}),
    ("atomics", True, {"src/core/a.h": C + BLOCK + "struct s {\n    atomic_uint other;\n};\n"}),
    ("atomics", True, {"src/core/a.h": C + BLOCK +
                       "struct s {\n    _Atomic int word, other;\n};\n"}),
    ("atomics", False, {"src/core/a.h": C + BLOCK + "struct s {\n    atomic_uint word;\n};\n"}),
    ("atomics", False, {"src/core/a.c": C + "f(atomic_load_explicit(&x, 0));\n"}),
    ("pairs", True, {"src/core/a.h": C + BLOCK}),
    ("pairs", True, {"src/core/a.h": C + "/* Pairs: something. */\n"}),
    ("pairs", False, {"src/core/a.h": C + BLOCK, "src/core/a.c": C + "/* Pairs: a-word */\n"}),
    ("pairs", False, {"src/core/a.h": C + "/* Pairs: none. */\n"}),
    ("errors", True, {"include/errand.h": ERRORS}),
    ("errors", True, {"src/a.c": "static int\ncheck(int x)\n{\n    ERRAND_REQUIRE_ARG(x, 1, \"\");\n"}),
    ("errors", False, {"src/a.c": "int\nerrand_a(int x)\n{\n    ERRAND_REQUIRE_ARG(x, 1, \"\");\n"}),
    ("errors", True, {"include/errand.h": ERRORS, "tests/hostile/calls_a.c": ERRORS_ROW}),
    ("errors", False, {"include/errand.h": ERRORS, "tests/hostile/calls_a.c": ERRORS_ROW,
                       "tests/a_test.c": "is(errand_do(1), ERRAND_EBUSY);\n"}),
    ("jemalloc", True, {"src/core/a.c": C + "void *p = mallocx(1, 0);\n"}),
    ("jemalloc", False, {"src/core/arena.c": C + "void *p = mallocx(1, 0);\n"}),
    ("headers", True, {"include/a.h": C + "uint64_t f(void);\n"}),
    ("headers", True, {"include/a.h": C + "int f(int class_, int new);\n"}),
    ("headers", True, {"include/a.h": C + "#ifndef A\n#define A\nint f(void);\n#endif\n"}),
    ("api", True, {"include/a.h": HEAD + "ERRAND_API int errand_a(void);\n"}),
    ("api", True, {"include/a.h": HEAD + "/* errand_a: x. */\nERRAND_API int errand_a(void);\n"}),
    ("api", True, {"include/a.h": HEAD + "/* errand_a.  Thread: [any]. */\n"
                   "ERRAND_API errand_status errand_a(void);\n"}),
    ("api", False, {"include/a.h": HEAD + "/* errand_a.  Thread: [any].  Errors: EBUSY. */\n"
                    "ERRAND_API errand_status errand_a(void);\n"
                    "ERRAND_API int errand_b(void);\n"}),
    ("format", True, {"src/core/a.c": C + "int   a;\n"}),
    ("format", False, {"src/core/a.c": C + "int a;\n"}),
    ("hygiene", True, {"src/core/a.c": C + "/* %s */\n" % UNFINISHED}),
    ("hygiene", True, {"README.md": "see %s\n" % MACHINE}),
    ("hygiene", True, {"src/core/a.c": C + "int a; \n"}),
    ("hygiene", True, {"tests/core/a.c": C + "assert_true(1);\n"}),
    ("hygiene", False, {"README.md": "a/work/b and build/x\n"}),
    ("test_names", True, {"tests/core/a_test.c": test_file("test1")}),
    ("test_names", True, {"tests/core/a_test.c": test_file("bind_works")}),
    ("test_names", True, {"tests/core/a_test.c": test_file("a_bind_is_refused") +
                          "static void\nnobody_runs_this_test(void **state)\n{\n}\n"}),
    ("test_names", True, {"tests/core/a_test.c": C}),
    ("test_names", False, {"tests/core/a_test.c": test_file("second_bind_is_refused")}),
    ("mutants", True, MUTANT | {"src/core/a.c": C + "int a;\nint a;\n"}),
    ("mutants", True, MUTANT | {"src/core/a.c": C + "int b;\n"}),
    ("mutants", True, MUTANT | {"tests/core/CMakeLists.txt": "errand_test(core_b a_test.c)\n"}),
    ("mutants", True, {"docs/promises.md": "| O1 | A sentence. | met |\n"}),
    ("mutants", False, MUTANT | {"docs/promises.md": "| O1 | A sentence. | met |\n"}),
    ("mutants", False, MUTANT | {"tests/core/CMakeLists.txt":
                                 "errand_test(core_${name} ${name}_test.c)\n"}),
    ("promises", True, {"docs/promises.md": ROWS.replace("| O7 |", "| O77 |")}),
    ("promises", True, {"docs/promises.md": ROWS.replace("| open |", "| met |", 1)}),
    ("promises", True, {"docs/promises.md": ROWS.replace("| open |", "| later |", 1)}),
    ("promises", True, {"docs/promises.md": ROWS, "tests/a.c": C + "/* O999 */\n"}),
    ("promises", False, {"docs/promises.md": ROWS.replace("| open |", "| met |", 1),
                         "tests/a.c": C + "/* O1 */\n"}),
    ("promises", False, {"docs/promises.md":
                         ROWS.replace("| open |", "| met, later: the rest |", 1),
                         "tests/a.c": C + "/* O1, O2 */\n"}),
]

report = tree.Report()
lints = {name[len("lint_"):-len(".py")] for name in os.listdir(tree.HERE)
         if name.startswith("lint_") and name.endswith(".py")} - {"itself"}
for lint in sorted(lints - {"runner"} - {case[0] for case in CASES if case[1]}):
    report.problem("tests/lint/lint_%s.py" % lint, 1, "nothing here makes it complain")
for lint, complains, content in CASES:
    with tempfile.TemporaryDirectory() as root:
        shutil.copy(os.path.join(tree.ROOT, ".clang-format"), root)
        for path, text in content.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run(
            [sys.executable, os.path.join(tree.HERE, "lint_%s.py" % lint), "--root", root],
            capture_output=True, text=True)
        if done.returncode != int(complains) or "Traceback" in done.stderr:
            report.problem("tests/lint/lint_%s.py" % lint, 1, "%s about %r\n%s%s" % (
                "is quiet" if complains else "complains", content, done.stdout, done.stderr))
report.end()
