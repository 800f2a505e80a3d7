#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks the code on purpose, once per file of tests/mutants, and expects a test to fail.

A mutant is a text file O17-what-is-broken.mutant:

    promise: O17
    file: src/dispatch/settle.c
    find: text that occurs exactly once in that file; \\n is a line end
    replace: what stands there instead
    tests: dispatch_settle dispatch_cancel

"tests" are programs of tests/: in one of them a test must fail that stands in a file which
cites the promise.
The tree is copied to build/mutants/tree first; the checkout is never touched.  Every promise
with status "met" needs a mutant.  Arguments are promise numbers to look at; none means all.
With --minutes N it begins with another one for each commit, and names what it did not reach in
that time as skipped.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPY = os.path.join(ROOT, "build", "mutants", "tree")
FIELDS = ("promise", "file", "find", "replace", "tests")
sys.path.insert(0, os.path.join(ROOT, "tests", "lint"))
import run_tests  # noqa: E402
import tree  # noqa: E402


def read_mutant(path):
    mutant = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, _, value = line.rstrip("\n").partition(":")
            if key in FIELDS:
                # One space belongs to the colon, more are the text's own.
                mutant[key] = value[1:] if value.startswith(" ") else value
    missing = [field for field in FIELDS if field not in mutant]
    if missing:
        raise ValueError("no " + ", ".join(missing))
    return mutant


def occurrences(mutant, text):
    return text.count(mutant["find"].replace("\\n", "\n"))


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def copy_tree():
    """Keeps the build folder and what is the same, so that only what changed is built again.
    What is copied is new to ninja: with the time of its original it would look older than what
    was made of a mutant of it."""
    wanted = set(tree.files(ROOT))
    for folder, folders, names in os.walk(COPY):
        if folder == COPY and "build" in folders:
            folders.remove("build")
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, COPY) not in wanted:
                os.remove(path)
    for path in sorted(wanted):
        target = os.path.join(COPY, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target) or contents(target) != contents(os.path.join(ROOT, path)):
            shutil.copy(os.path.join(ROOT, path), target)


def build(programs, first=False):
    """Without -Werror: a mutant may leave a variable unused."""
    environment = dict(os.environ)
    if first:
        environment["ERRAND_CMAKE_ARGUMENTS"] = "-DERRAND_WERROR=OFF"
    command = [os.path.join(COPY, "ci", "build.sh"), "dev"] + programs
    return subprocess.run(command, cwd=COPY, capture_output=True, text=True, env=environment)


def programs_of():
    with open(os.path.join(COPY, "build", "dev", "tests.list")) as file:
        programs = [run_tests.Program(line) for line in file if line.strip()]
    return {program.name: program for program in programs}


def targets_of(folder, names, wanted):
    """What tests the mutants of these promises; [] is everything."""
    programs = programs_of()
    targets = set()
    for name in names:
        try:
            mutant = read_mutant(os.path.join(folder, name))
        except ValueError:
            continue  # it is told with the others
        if mutant["promise"] in wanted:
            targets.update(mutant["tests"].split())
    if any(programs[name].kind == "command" for name in targets if name in programs):
        return []
    return sorted(targets & set(programs)) or ["errand_testing"]


def citing(promise):
    """The text of each test file that cites the promise."""
    pattern = re.compile(r"(?<![\w-])%s\b" % re.escape(promise))
    texts = (tree.read(COPY, path) for path in tree.files(COPY)
             if path.startswith(("tests/", "fuzz/"))
             and not path.startswith(("tests/lint/", "tests/mutants/")))
    return [text for text in texts if pattern.search(text)]


def stands_in(name, text):
    """Is the test made by this text?  One in Lua may have the way in which it ran behind its name."""
    if re.search(r"^(?:def )?%s\(" % re.escape(name), text, re.M):
        return True
    made = re.findall(r'^(?:check\.)?\w+\("(\w+)", function', text, re.M)
    return any(name == one or name.startswith(one + "_") for one in made)


def noticed(program, texts):
    """Does a test of the program fail that stands in one of these texts?"""
    environment = dict(os.environ, ERRAND_TEST_SECONDS="10", CMOCKA_MESSAGE_OUTPUT="STDOUT",
                       **program.environment)
    try:
        done = subprocess.run(program.command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=120, cwd=COPY, env=environment)
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        code, output = None, error.stdout or b""
    ended, hung = run_tests.read_tests(output.decode("utf-8", "replace"))
    names = [name for status, name, _ in ended if status == "fail"] + [hung] * bool(hung)
    names = [name.partition(" (")[0] for name in names]  # of tests/runtime/both.h
    if not names:
        return code != 0 and program.kind == "command"
    return any(stands_in(name, text) for name in names for text in texts)


def survivors(mutant):
    """Answers "" if a test noticed that cites the promise, else why none did."""
    target = os.path.join(COPY, mutant["file"])
    find, put = (mutant[key].replace("\\n", "\n") for key in ("find", "replace"))
    with open(target, encoding="utf-8") as file:
        original = file.read()
    if occurrences(mutant, original) != 1:
        return "%s has the text to find %d times" % (mutant["file"],
                                                     occurrences(mutant, original))
    texts = citing(mutant["promise"])
    if not texts:
        return "no test cites " + mutant["promise"]
    names = mutant["tests"].split()
    try:
        with open(target, "w", encoding="utf-8") as file:
            file.write(original.replace(find, put))
        programs = programs_of()
        for name in names:
            if name not in programs:
                return "no test program " + name
        # A command is no target: it runs what others made.
        is_command = any(programs[name].kind == "command" for name in names)
        built = build([] if is_command else names)
        if built.returncode != 0:
            return "the mutant does not compile\n" + (built.stdout + built.stderr)[-2000:]
        if any(noticed(programs[name], texts) for name in names):
            return ""
        return "no test that cites it fails"
    finally:
        with open(target, "w", encoding="utf-8") as file:
            file.write(original)


def turned(names):
    """The names, beginning with one that the commit chooses."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True)
    first = zlib.crc32(commit.stdout) % max(len(names), 1)
    return names[first:] + names[:first]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("promises", nargs="*", help="numbers of promises; none means all")
    parser.add_argument("--minutes", type=float, default=0, help="begin no mutant after them")
    options = parser.parse_args()
    wanted = set(options.promises)
    folder = os.path.join(COPY, "tests", "mutants")
    results = open(os.environ.get("ERRAND_RESULTS", os.devnull), "a")
    failed = False

    def tell(status, name, why):
        print("%-40s %s" % (name, why or "noticed"), flush=True)
        results.write("%s\tmutant\t%s\t%s\n" %
                      (status, name, why.splitlines()[0] if why else ""))
        results.flush()

    def result(name, why):
        nonlocal failed
        failed = failed or bool(why)
        tell("fail" if why else "pass", name, why)

    copy_tree()
    names = [name for name in sorted(os.listdir(folder)) if name.endswith(".mutant")]
    # All of it, or what the promises that were named are tested by.
    whole = build(["errand_testing"] if wanted else [], first=True)
    if whole.returncode == 0 and wanted:
        whole = build(targets_of(folder, names, wanted))
    if whole.returncode != 0:
        print(whole.stdout[-4000:] + whole.stderr[-2000:])
        result("build", "the unchanged tree does not compile")
        return 1
    broken = set()
    end = time.monotonic() + 60 * options.minutes
    for name in turned(names) if options.minutes else names:
        try:
            mutant = read_mutant(os.path.join(folder, name))
            broken.add(mutant["promise"])
            if wanted and mutant["promise"] not in wanted:
                continue
            if options.minutes and time.monotonic() > end:
                tell("skip", name[:-len(".mutant")], "not reached in %g minutes; ./check "
                     "--mutants tries all" % options.minutes)
            else:
                result(name[:-len(".mutant")], survivors(mutant))
        except (ValueError, OSError) as error:
            result(name, str(error))
    for promise in tree.promises(COPY):
        if promise.status == "met" and promise.number not in broken and not wanted:
            result(promise.number, "met, but no mutant breaks it")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
