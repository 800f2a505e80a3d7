# SPDX-License-Identifier: MIT
"""errand explore --from-step: it names the step that decides where that is known, its lines do what
they say, and nothing of its processes is left, however it ends.  ERRAND_TEST_SCALE=10 (./check
--long) goes back from more failures of each planted bug, with twice as many branches."""
import json
import os
import re
import resource
import shlex
import signal
import time

import program_case

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLANTED = os.path.join(ROOT, "examples", "planted")

# Its only draw decides, and the rest of it cannot be told from a good run.
DRAW = """local errand = require "errand"
for i = 1, 4 do errand.sleep(0.001) end
local doomed = errand.random(3) == 1
%s
for i = 1, 4 do errand.sleep(0.001) end
if doomed then %s end
"""
STALL = ("local a, b; a = errand.spawn(function() errand.yield() errand.await(b) end) "
         "b = errand.spawn(function() errand.await(a) end) errand.await(a)")
ERROR = 'error("it was decided long ago")'
# From each step that is tried; the program's own number, where a fork does not take twenty times as long.
BRANCHES = 8 if program_case.SANITIZED else 20


def _explore(case, *words, leaks=False, **options):
    if case.run("--version").out.find("thread") >= 0:
        raise program_case.Skip("that sanitizer has a thread, so nothing can be forked")
    if not leaks:
        case.looks_for_no_leaks()
    if program_case.SANITIZED and "--branches" not in words:
        words += ("--branches", str(BRANCHES))
    return case.run("explore", "--report", "report.json", *words, **options)


def _report(case):
    with open(case.path("report.json")) as file:
        return json.load(file)["failures"]


def _again(case, line):
    words = shlex.split(line)
    assert words[0] == case.program, line
    return case.run(*words[1:])


def _lines(case, out):
    return re.findall(r"^    (%s run .*)$" % re.escape(case.program), out, re.M)


def _drawing_step(case, seed):
    """The step of the draw, as a trace of the run tells it."""
    case.run("run", "-q", "--order", "inline", "--seed", str(seed), "--trace", "t", "a.lua")
    with open(case.path("t")) as file:
        return [int(line.split("\t")[0]) for line in file if "\tdraw\t" in line][0]


def the_step_that_draws_the_lot_is_named(case):
    case.write("a.lua", DRAW % ("", ERROR))
    done = _explore(case, "--from-step", "auto", "a.lua", leaks=True)
    first = _report(case)[0]
    step = _drawing_step(case, first["seed"])
    assert done.code == 1 and first["deciding_step"] == step, (step, done)
    assert first["deciding_kind"] == "draw" and first["deciding_path"] == "task", first
    assert 0 < first["branches_failed"] < first["branches"] == BRANCHES, first
    assert first["deciding_time_ns"] == 4000000, first
    assert "step %d of %d decides: 4.000000 ms, draw task" % (step, first["steps"]) in done.out
    assert "from step %d on every branch fails: %d of %d\n" % (step + 1, BRANCHES, BRANCHES) \
        in done.out, done
    good = _again(case, _lines(case, done.out)[0])
    assert good.code == 0, good


def one_step_is_tried_with_as_many_branches_as_asked_for(case):
    case.write("a.lua", DRAW % ("", ERROR))
    seed = _report(case)[0]["seed"] if _explore(case, "a.lua", "--stop-after", "1") else 0
    step = _drawing_step(case, seed)
    words = ("a.lua", "--seed", str(seed), "--branches", "30")
    after = _explore(case, "--from-step", str(step + 1), *words)
    assert "branches that fail: 30 of 30\n" in after.out, after
    before = _explore(case, "--from-step", str(step), *words)
    count = int(re.search(r"branches that fail: (\d+) of 30\n", before.out).group(1))
    assert 3 < count < 20, before
    good, bad = _lines(case, before.out)
    assert _again(case, good).code == 0, good
    assert "it was decided long ago" in _again(case, bad).err, bad
    assert "ended otherwise" not in before.out, before


def a_tape_is_a_run_like_any_seed(case):
    case.write("a.lua", DRAW % ("", ERROR))
    found = _explore(case, "a.lua", "--minimise", "--stop-after", "1", "--jobs", "1")
    tape = _report(case)[0]["minimised_tape"]
    words = ("a.lua", "--tape", tape, "--policy", "fifo")
    done = _explore(case, "--from-step", "auto", *words)
    first = _report(case)[0]
    assert first["deciding_kind"] == "draw" and "--tape" in first["reproduce"], (found, done)
    assert _again(case, _lines(case, done.out)[0]).code == 0, done


def every_planted_bug_has_a_step_that_decides(case):
    names = sorted(os.listdir(PLANTED))
    branches = "20" if program_case.SCALE > 1 else "10"
    for name in names[:1] if program_case.SANITIZED else names:
        done = _explore(case, "--from-step", "auto", "--jobs", "2", "--branches", branches,
                        os.path.join(PLANTED, name))
        first = _report(case)[0]
        assert 1 < first["deciding_step"] < first["steps"], (name, done)
        assert first["branches_failed"] < first["branches"], (name, done)
        good = _again(case, _lines(case, done.out)[0])
        assert good.code == 0, (name, good)
        if program_case.SCALE > 1 and not program_case.SANITIZED:
            _other_seeds(case, os.path.join(PLANTED, name))


def _other_seeds(case, script):
    """The same of other seeds that fail."""
    _explore(case, script, "--seeds", "300")
    seeds = sorted(seed for failure in _report(case) for seed in failure["seeds"])
    for seed in seeds[1:1 + program_case.SCALE // 2]:
        done = _explore(case, "--from-step", "auto", "--jobs", "2", script, "--seed", str(seed))
        first = _report(case)[0]
        assert 1 < first["deciding_step"] < first["steps"], (script, seed, done)
        good = _again(case, _lines(case, done.out)[0])
        assert good.code == 0, (script, seed, good)


def each_way_to_end_can_be_gone_back_from(case):
    endings = [("os.exit(3)", "exit"), ("while true do end", "timeout"), (STALL, "stall"),
               ('io.popen("kill -KILL $PPID"):read()', "crash")]
    for ending, how in endings[:2] if program_case.SANITIZED else endings:
        case.write("a.lua", DRAW % ("", ending))
        limit = "1" if how == "timeout" else "60"  # a busy machine may be slow
        done = _explore(case, "--from-step", "auto", "a.lua", "--timeout", limit,
                        "--branches", "4", "--jobs", "4")
        first = _report(case)[0]
        assert first["class"] == how, (how, done)
        assert first["deciding_kind"] == "draw", (how, done)


def operations_and_child_processes_go_on_in_branches(case):
    work = ('assert(errand.read_file("a.lua"):find("doomed"))\n'
            'assert(errand.command{"echo", "x"}.output == "x\\n")')
    case.write("a.lua", DRAW % (work, ERROR))
    done = _explore(case, "--from-step", "auto", "a.lua")
    first = _report(case)[0]
    assert first["deciding_kind"] == "draw", done
    assert first["site"] == "a.lua:7" and "it was decided" in first["message"], first


def what_branches_print_is_kept_from_the_terminal(case):
    case.write("a.lua", DRAW % ('print("chatter")', ERROR))
    done = _explore(case, "--from-step", "auto", "a.lua")
    assert "decides" in done.out and "chatter" not in done.out + done.err, done


def a_mark_that_waits_long_is_late_for_no_deadline(case):
    work = "local x = 0; for i = 1, 2000000 do x = x ~ i end"
    text = DRAW.replace("local doomed", "errand.random(2); local doomed") % (work, ERROR)
    case.write("a.lua", text)
    _explore(case, "a.lua", "--stop-after", "1")
    seed = _report(case)[0]["seed"]
    step = _drawing_step(case, seed) + 1  # the mark stands inside the visit
    done = _explore(case, "a.lua", "--from-step", str(step), "--seed", str(seed), "--deadline",
                    "1.5", "--branches", "150", "--jobs", "1")
    assert "of 150" in done.out and "in the same way" not in done.out, done
    assert float(re.search(r"branches in ([0-9.]+) s", done.out).group(1)) > 1.5, done


def few_descriptors_are_enough(case):
    def bound():
        resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))
    case.write("a.lua", DRAW % ("", ERROR))
    done = _explore(case, "--from-step", "auto", "a.lua", "--branches", "60", preexec_fn=bound)
    assert _report(case)[0]["deciding_kind"] == "draw", done


def _left(word):
    """Processes whose command line has the word."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % entry, "rb") as file:
                if word.encode() in file.read() and int(entry) != os.getpid():
                    found.append(entry)
        except (OSError, ValueError):
            pass
    return found


def no_process_is_left_however_it_ends(case):
    for number in (0, signal.SIGINT, signal.SIGKILL):
        name = "left-%d-%d.lua" % (os.getpid(), number)
        wait = 'errand.command{"sh", "-c", "exec sleep $NAP"}' if number else ""
        case.write(name, DRAW % (wait, ERROR))
        if number == 0:
            _explore(case, "--from-step", "auto", name)
        else:
            _explore(case, "--stop-after", "1", "--jobs", "8", name,
                     env=dict(case.environment, NAP="0"))
            seed = _report(case)[0]["seed"]
            process = case.start("explore", "--from-step", "auto", name, "--seed", str(seed),
                                 env=dict(case.environment, NAP="1.5"))
            end = time.monotonic() + 40
            while len(_left(name)) < 8 and time.monotonic() < end:
                time.sleep(0.02)
            assert len(_left(name)) >= 8, _left(name)  # marks, and branches
            process.send_signal(number)
            case.end(process)
        end = time.monotonic() + 20
        while _left(name) and time.monotonic() < end:
            time.sleep(0.05)
        assert not _left(name), number


def what_cannot_be_is_named_with_its_mend(case):
    case.write("a.lua", DRAW % ("", ERROR))
    for words, said in ((("--from-step", "1"), "from 2 on"), (("--from-step", "x"), "give auto"),
                        (("--from-step", "auto", "--order", "paced"), "inline"),
                        (("--branches", "0"), "whole number"), (("--seed", "x"), "whole"),
                        (("--tape", "none.tape"), "none.tape")):
        done = case.run("explore", "a.lua", *words)
        assert done.code == 2 and said in done.err, (words, done)
    _explore(case, "a.lua", "--stop-after", "1")
    seed = str(_report(case)[0]["seed"])
    done = _explore(case, "a.lua", "--seed", seed, "--from-step", "4000")
    assert done.code == 6 and "the run has" in done.err, done
    case.write("b.lua", "local errand = require 'errand'\nlocal file = errand.open('b.lua')\n"
                        "errand.sleep(1)\nerrand.stat('.')\nerror('wrong')\n")
    done = _explore(case, "b.lua", "--seed", "1", "--from-step", "auto")
    assert done.code == 6 and "executor has threads of its own" in done.err, done
    told = re.search(r"cannot be forked at step (\d+):", done.err)
    assert told and int(told[1]) > 1 and "Give a step before" in done.err, done
    assert "manual" not in done.err, done
    case.write("a.lua", "return")
    done = _explore(case, "a.lua", "--seed", "1", "--from-step", "auto")
    assert done.code == 0 and "nothing failed" in done.out, done


if __name__ == "__main__":
    program_case.main(globals())
