#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the programs of a build's tests.list and writes one result line per test.

Result lines (tab separated): pass|fail|skip, configuration, test, reason.
A program's tests are read from cmocka's own lines.  A test that started and did not end, a
program that ends badly although its tests passed, one that runs no test, and one that is
skipped without a reason are all failures.  A program of the kind "command" that prints no
such lines counts as one test.
"""
import argparse
import concurrent.futures
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import time

# cmocka says "[  FAILED  ] name", and before it what went wrong and where:
# "[  ERROR   ] --- 1 != 2" and "[   LINE   ] --- file:1: error: Failure!".
DETAIL = re.compile(r"\[ *(?:ERROR|LINE) *\] --- (.*?)(?:: error: Failure!)?\s*$")
MARK = re.compile(r"\[ *(RUN|OK|FAILED|SKIPPED|ERROR|REASON) *\] (\S.*?)\s*$")


# Most programs wait more than they compute; still more at once only make each other late.
JOBS = max(2, min(8, (os.cpu_count() or 1) * 3 // 2))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="build folder that holds tests.list")
    parser.add_argument("--config", required=True, help="name of this configuration")
    parser.add_argument("--results", required=True, help="file to append results to")
    parser.add_argument("--kinds", default="test,command", help="which lines to run")
    parser.add_argument("--only-label", default="")
    parser.add_argument("--without-label", default="")
    parser.add_argument("--only-names", default="", help="a pattern of whole program names")
    parser.add_argument("--wrap", default="", help="command to put before each program")
    parser.add_argument("--slower", type=float, default=1.0, help="factor on every limit")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--repeat", type=int, default=1)
    return parser.parse_args()


class Program:
    def __init__(self, line):
        fields = line.rstrip("\n").split("\t")
        self.kind, self.name, self.timeout, labels, environment = fields[:5]
        self.timeout = float(self.timeout)
        self.labels = [label for label in labels.split(",") if label]
        self.environment = dict(item.split("=", 1) for item in environment.split(",") if item)
        self.command = fields[5:]


def without_address_randomness():
    """Sanitizers fail at start where the kernel spreads mappings over more than 28 bits."""
    try:
        with open("/proc/sys/vm/mmap_rnd_bits") as file:
            bits = int(file.read())
    except (OSError, ValueError):
        return []
    return ["setarch", platform.machine(), "-R"] if bits > 28 else []


def environment_of(program, options):
    environment = dict(os.environ)
    environment.setdefault("ERRAND_TEST_SCALE", "1")
    environment["ERRAND_TEST_SECONDS"] = str(int(60 * options.slower))
    environment["ERRAND_TEST_CONFIG"] = options.config
    environment["CMOCKA_MESSAGE_OUTPUT"] = "STDOUT"
    environment["ASAN_OPTIONS"] = "detect_leaks=1:strict_string_checks=1"
    environment["LSAN_OPTIONS"] = "print_suppressions=0:suppressions=" + os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "leaks.txt")
    environment["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    # It sleeps a second at each exit, to see what other threads do then; a command has a hundred.
    environment["TSAN_OPTIONS"] = "second_deadlock_stack=1:history_size=4:atexit_sleep_ms=%d" % (
        0 if program.kind == "command" else 100)
    environment.update(program.environment)
    return environment


def end_group(process):
    """Ends what the program left behind; it has a process group of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def run(program, options, folder):
    """Answers (exit code or None at a timeout, output)."""
    path = os.path.join(folder, program.name + ".log")
    command = without_address_randomness() + shlex.split(options.wrap) + program.command
    with open(path, "wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            env=environment_of(program, options), start_new_session=True)
        try:
            code = process.wait(program.timeout * options.slower)
        except subprocess.TimeoutExpired:
            code = None
        end_group(process)
        process.wait()
    with open(path, "rb") as log:
        return code, log.read().decode("utf-8", "replace")


def describe(code, timeout):
    if code is None:
        return "timed out after %g s" % timeout
    if code < 0:
        try:
            return "ended by %s" % signal.Signals(-code).name
        except ValueError:
            return "ended by signal %d" % -code
    return "exit code %d" % code


def read_tests(output):
    """Answers the tests that ended [(status, name, reason)] and the one that did not."""
    ended, open_test, reasons, said = [], None, {}, []
    for line in output.splitlines():
        detail = DETAIL.search(line)
        if detail:
            said.append(detail.group(1))
            continue
        match = MARK.search(line)
        if not match:
            continue
        status, name = match.groups()
        if status == "RUN":
            if open_test is not None:
                ended.append(("fail", open_test, "started and did not end"))
            open_test, said = name, []
        elif status == "REASON":
            test, _, reason = name.partition(": ")
            reasons[test] = reason
        elif name == open_test:
            if status == "OK":
                ended.append(("pass", name, ""))
            elif status == "SKIPPED":
                reason = reasons.get(name)
                ended.append(("skip", name, reason) if reason else
                             ("fail", name, "skipped without a reason"))
            else:
                ended.append(("fail", name, "; ".join(said[:2])))
            open_test = None
    return ended, open_test


def judge(program, options, code, output):
    ended, open_test = read_tests(output)
    bad = describe(code, program.timeout * options.slower) if code != 0 else ""
    results = [(status, "%s/%s" % (program.name, name), reason)
               for status, name, reason in ended]
    if open_test is not None:
        results.append(("fail", "%s/%s" % (program.name, open_test), bad or "did not end"))
    elif bad and not any(status == "fail" for status, _, _ in results):
        results.append(("fail", program.name, bad))
    if not results:
        if program.kind != "command":
            results.append(("fail", program.name, "ran no test"))
        else:
            results.append(("pass", program.name, ""))
    return results


def main():
    options = arguments()
    with open(os.path.join(options.build, "tests.list")) as file:
        programs = [Program(line) for line in file if line.strip()]
    kinds = options.kinds.split(",")
    programs = [p for p in programs if p.kind in kinds
                and (not options.only_label or options.only_label in p.labels)
                and (not options.without_label or options.without_label not in p.labels)
                and (not options.only_names or re.fullmatch(options.only_names, p.name))]
    if not programs:
        print("no program of this kind and label in %s" % options.build, file=sys.stderr)
        return 2
    folder = os.path.join(options.build, "logs")
    os.makedirs(folder, exist_ok=True)
    failed = 0

    seconds = []

    def go(program):
        start = time.monotonic()
        code, output = run(program, options, folder)
        seconds.append((time.monotonic() - start, program.name))
        return program, judge(program, options, code, output), output

    def report(done):
        nonlocal failed
        program, results, output = done
        with open(options.results, "a") as file:
            for status, name, reason in results:
                reason = reason.replace("\t", " ")
                file.write("\t".join((status, options.config, name, reason)) + "\n")
        if any(status == "fail" for status, _, _ in results):
            failed += 1
            print("---- %s" % program.name)
            print("\n".join(output.splitlines()[-60:]))

    together = [p for p in programs if "serial" not in p.labels and "stress" not in p.labels]
    alone = [p for p in programs if p not in together]
    together.sort(key=lambda p: -p.timeout)  # the longest first, or one of them runs last alone
    for _ in range(options.repeat):
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for done in pool.map(go, together):
                report(done)
        for program in alone:
            report(go(program))
    print("slowest: " + ", ".join("%s %.1f s" % (name, took)
                                  for took, name in sorted(seconds, reverse=True)[:12]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
