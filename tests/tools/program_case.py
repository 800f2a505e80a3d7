# SPDX-License-Identifier: MIT
"""What the tests of the program share: a folder of its own for each test, ways to run the
program, and result lines as the test runner reads them.

A test is a function that takes a Case and asserts; its name is a sentence.  main(globals())
runs those whose names do not begin with an underscore, in the order of the file.
"""
import fnmatch
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

LIMIT = float(os.environ.get("ERRAND_TEST_SECONDS", "60"))
# How many times as much a test does that has a longer form: 10 in ./check --long.
SCALE = int(os.environ.get("ERRAND_TEST_SCALE", "1"))
# There a run of the program takes twenty times as long: tests of many runs make fewer.
SANITIZED = os.environ.get("ERRAND_TEST_CONFIG", "") in ("asan", "clang-asan", "tsan", "gcc-tsan")
# A sanitizer's report ends a program with this code, which no test expects.
SANITIZER_CODE = 77


class Skip(Exception):
    """Raised with the reason why a configuration cannot run a test."""


class Done:
    """How a run of the program ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return "code %s\n--- out\n%s\n--- err\n%s" % (self.code, self.out[-4000:],
                                                      self.err[-4000:])


class Case:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.processes = []
        self.environment = dict(os.environ)
        for tool in ("ASAN", "UBSAN", "TSAN"):
            name = tool + "_OPTIONS"
            before = self.environment.get(name, "")
            self.environment[name] = before + ":exitcode=%d" % SANITIZER_CODE

    def looks_for_no_leaks(self):
        """For a test of very many runs: of each of them a sanitizer would ask half of its time for
        leaks, and the other tests have the same code looked at."""
        self.environment["ASAN_OPTIONS"] += ":detect_leaks=0"

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def start(self, *words, **options):
        """The program, with pipes, in the test's folder and in a process group of its own."""
        settings = dict(cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                        errors="replace", start_new_session=True)
        settings.update(options)
        process = subprocess.Popen([self.program, *words], **settings)
        self.processes.append(process)
        return process

    def end(self, process, before=""):
        """What it says from now on, and how it ends."""
        out, err = process.communicate(timeout=LIMIT)
        return Done(process.returncode, before + (out or ""), err or "")

    def run(self, *words, **options):
        return self.end(self.start(*words, **options))

    def lua(self, text, *words, **options):
        """Runs a script that is written for this test."""
        self.write("script.lua", text)
        return self.run("run", "script.lua", *words, **options)

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def read_until(pipe, text):
    """Lines of a pipe up to the one that holds text; fails at its end."""
    said = ""
    for line in pipe:
        said += line
        if text in line:
            return said
    raise AssertionError("ended before it said %r: %r" % (text, said))


def digest_of(out):
    found = re.findall(r"^digest: ([0-9a-f]{16})$", out, re.M)
    assert len(found) == 1, out[-2000:]
    return found[0]


def _run_test(name, test, program):
    folder = tempfile.mkdtemp(prefix="errand-test-")
    case = Case(program, folder)
    print("[ RUN      ] %s" % name, flush=True)
    try:
        test(case)
    except Skip as reason:
        print("[  REASON  ] %s: %s" % (name, reason))
        print("[  SKIPPED ] %s" % name, flush=True)
    except Exception as problem:
        traceback.print_exc(file=sys.stdout)
        lines = str(problem).splitlines() or [type(problem).__name__]
        print("[  ERROR   ] --- %s" % lines[0])
        print("[  FAILED  ] %s" % name, flush=True)
        return False
    else:
        print("[       OK ] %s" % name, flush=True)
    finally:
        case.close()
        shutil.rmtree(folder, ignore_errors=True)
    return True


def main(names):
    wanted = os.environ.get("ERRAND_TEST_FILTER", "*")
    good = True
    for name, test in list(names.items()):
        if name.startswith("_") or not inspect.isfunction(test):
            continue
        if test.__module__ != "__main__" or not fnmatch.fnmatch(name, wanted):
            continue
        good = _run_test(name, test, os.path.abspath(sys.argv[1])) and good
    sys.exit(0 if good else 1)
