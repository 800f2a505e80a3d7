#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a process for each seed costs: errand explore with an empty script, and with one of half a
second of processor time.

  bench/seeds.py [PROGRAM] [--seeds N] [--long N]      PROGRAM: build/release/tools/errand/errand

Times are processor times of errand explore and all its children, so that load on the machine
counts little.  Exit code 1: fewer than 7000 seeds of half a second per hour and processor."""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = 7000  # seeds of half a second, per hour and processor
EMPTY = "return\n"
LOOP = "local x = 0\nfor i = 1, tonumber((...)) do x = x ~ i end\n"


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cost(*words):
    """Processor seconds of one run of the program."""
    before = used()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return used() - before


def explore(program, seeds, *words):
    """Processor seconds per seed, the run that learns the steps included."""
    return cost(program, "explore", "-q", "--jobs", "1", "--seeds", str(seeds), *words) / (
        seeds + 1)


def main():
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("program", nargs="?",
                        default=os.path.join(ROOT, "build/release/tools/errand/errand"))
    reader.add_argument("--seeds", type=int, default=1000, help="of the empty script")
    reader.add_argument("--long", type=int, default=8, help="seeds of half a second")
    given = reader.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        empty, loop = os.path.join(folder, "empty.lua"), os.path.join(folder, "loop.lua")
        with open(empty, "w") as file:
            file.write(EMPTY)
        with open(loop, "w") as file:
            file.write(LOOP)
        over = explore(given.program, given.seeds, empty)
        turns = 10_000_000
        turns = int(turns * 0.5 / cost(given.program, "run", "-q", "--order", "inline", loop,
                                       str(turns)))
        half = explore(given.program, given.long, loop, str(turns))
    rate = 3600 / (0.5 + over)
    print("a seed's process: %.2f ms of processor time; empty script: %.0f seeds per hour "
          "and processor" % (over * 1e3, 3600 / over))
    print("script of half a second: %.0f seeds per hour and processor (target %d); measured "
          "with a loop of about that: %.3f s, %.0f" % (rate, TARGET, half, 3600 / half))
    return 0 if rate >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
