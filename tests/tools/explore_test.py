# SPDX-License-Identifier: MIT
"""errand explore: it finds each planted bug, the lines that it prints fail again with the same
message, what is mended finds nothing, and small failures are small.  ERRAND_TEST_SCALE=10 (./check
--long) has thousands of seeds, and all bugs where else are two."""
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import time

import program_case

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLANTED = os.path.join(ROOT, "examples", "planted")

# script: seeds within which it is found, a part of the message
BUGS = {
    "cache": (20, "the page was fetched 2 times"),
    "bank": (20, "instead of 300"),
    "locks": (20, "every task waits"),
    "queue": (20, "slept for an hour"),
    "search": (20, "older text"),
    "order": (20, "was booked"),
    "session": (300, "Berta's cart is not empty"),
    "lease": (200, "was overwritten by the old leader"),
    "freelist": (200, "which is in use"),
    "backup": (200, "the atlas is on no shelf"),
    "stock": (10, "the books know"),
}


def _script(name):
    return os.path.join(PLANTED, name + ".lua")


def _explore(case, *words):
    """Explores; what it said, and the report."""
    done = case.run("explore", "--report", "report.json", *words)
    with open(case.path("report.json")) as file:
        return done, json.load(file)


def _again(case, line):
    """Runs a line as it was printed, with the program under test."""
    words = shlex.split(line)
    assert words[0] == case.program, line
    return case.run(*words[1:])


def _running(mark):
    """The command lines of processes in which the mark stands."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % number) as file:
                line = file.read()
        except OSError:
            continue
        if mark in line:
            found.append(line)
    return found


def _lines(case, out):
    return re.findall(r"^  (%s run .*)$" % re.escape(case.program), out, re.M)


# ---- planted bugs -------------------------------------------------------------------------

def every_planted_bug_is_found_and_its_line_fails_again(case):
    case.looks_for_no_leaks()
    for name, (seeds, message) in BUGS.items():
        if program_case.SANITIZED and name not in ("cache", "locks", "lease", "stock"):
            continue
        done, report = _explore(case, _script(name), "--seeds", str(seeds), "--stop-after", "1")
        assert done.code == 1 and report["failures"], (name, done)
        first = report["failures"][0]
        assert message in first["text"] and first["proven"], (name, done)
        lines = _lines(case, done.out)
        assert first["reproduce"] in lines, (name, done)
        again = _again(case, first["reproduce"])
        assert again.code in (1, 4), (name, again)
        assert first["text"].split("\n")[0] in again.err, (name, again)


def the_lines_begin_as_the_program_was_called(case):
    folder = os.path.dirname(case.program)
    for called in ("errand", case.program, os.path.join(folder, ".", "errand")):
        case.write("a.lua", "error('always')")
        process = subprocess.Popen([called, "explore", "a.lua", "--seeds", "1"], executable=case.program,
                                   cwd=case.folder, env=case.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        case.processes.append(process)
        done = case.end(process)
        assert "\n  %s run --order inline --seed 1 " % called in done.out, done
        assert "did not fail" not in done.out, done


def paced_order_finds_what_inline_order_finds(case):
    case.looks_for_no_leaks()
    for name in BUGS if program_case.SCALE > 1 and not program_case.SANITIZED else ("locks", "search"):
        found = [_explore(case, _script(name), "--seeds", str(max(40, BUGS[name][0])),
                          "--order", order)[1]["failures"]
                 for order in ("inline", "paced")]
        assert found[0] and [one["seeds"] for one in found[0]] == \
            [one["seeds"] for one in found[1]], (name, found)
        assert "--order paced" in found[1][0]["reproduce"] and found[1][0]["proven"], found


def the_mended_programs_find_nothing(case):
    """In those seeds in which the bug is found, and at full length in two thousand."""
    case.looks_for_no_leaks()
    for name, (seeds, _) in BUGS.items():
        if program_case.SANITIZED:
            seeds = 10 * program_case.SCALE
        elif program_case.SCALE > 1:
            seeds = 200 * program_case.SCALE
        done = case.run("explore", _script(name), "fixed", "--seeds", str(seeds))
        assert done.code == 0 and "nothing failed" in done.out, (name, done)


def every_planted_script_is_in_this_list(case):
    found = {name[:-4] for name in os.listdir(PLANTED) if name.endswith(".lua")}
    assert found == set(BUGS), found ^ set(BUGS)


def pct_finds_bugs_of_depth_3_in_fewer_runs_than_uniform_picks(case):
    if program_case.SANITIZED:
        raise program_case.Skip("it counts a thousand runs, and a sanitizer counts the same")
    better = 0
    for name in ("session", "lease", "freelist", "backup"):
        done, report = _explore(case, _script(name), "--policy", "pct:3", "--seeds", "500",
                                "--stop-after", "1", "--jobs", "1")
        if not report["failures"]:
            continue
        # Better, if the other finds nothing up to the same seed.
        done, report = _explore(case, _script(name), "--policy", "pick", "--seeds",
                                str(report["failures"][0]["seed"]), "--stop-after", "1")
        better += not report["failures"]
    assert better >= 3, better


# ---- fingerprints ---------------------------------------------------------------------------

def _lua(case, text, *words):
    case.write("script.lua", 'local errand = require "errand"\n' + text)
    return _explore(case, "script.lua", *words)


def failures_that_differ_in_numbers_are_one(case):
    done, report = _lua(case, 'error("it is " .. errand.random(1000))', "--seeds", "10")
    assert len(report["failures"]) == 1 and report["failures"][0]["count"] == 10, done
    assert report["failures"][0]["message"] == "it is #", report
    assert report["failures"][0]["site"] == "script.lua:2", report


def failures_at_two_places_are_two(case):
    done, report = _lua(case, 'if errand.random(2) == 1 then error("no") end\nerror("no")',
                        "--seeds", "20")
    sites = sorted(failure["site"] for failure in report["failures"])
    assert sites == ["script.lua:2", "script.lua:3"], done
    assert sum(failure["count"] for failure in report["failures"]) == 20, report


def every_way_to_end_badly_has_its_class(case):
    cases = {
        "stall": "local a, b\na = errand.spawn(function() errand.yield() errand.await(b) end)\n"
                 "b = errand.spawn(function() errand.await(a) end)\nerrand.await(a)",
        "panic": 'errand.job("panic", "it is broken")',
        "exit": "os.exit(7)",
        "crash": 'os.execute("kill -KILL $PPID")',
        "timeout": "while true do end",
        "deadline": "errand.sleep(50)",
    }
    for wanted, text in cases.items():
        limit = "1.5" if wanted == "timeout" else "60"  # a busy machine may be slow
        done, report = _lua(case, text, "--seeds", "2", "--timeout", limit, "--deadline", "40")
        assert done.code == 1, (wanted, done)
        assert [failure["class"] for failure in report["failures"]] == [wanted], (wanted, done)
        assert report["failures"][0]["proven"], (wanted, done)


def a_crash_shows_its_signal_and_the_last_line_that_it_printed(case):
    text = 'io.stderr:write("one\\nbefore the end 7\\n\\n") os.execute("kill -KILL $PPID")'
    done, report = _lua(case, text, "--seeds", "2")
    assert "failure 1: crash with SIGKILL, 2 of 2 seeds\n" \
        "  the last line that it printed: before the end 7\n  %s run " % case.program in done.out, done
    assert report["failures"][0]["message"] == "before the end #", report
    done, report = _lua(case, 'os.execute("kill -KILL $PPID")', "--seeds", "1")
    assert "last line" not in done.out and "crash with SIGKILL, 1 of 1 seeds" in done.out, done


def two_runs_that_differ_are_named_with_their_logs(case):
    # The number of the process: addresses are the same where sanitizers need them so.
    text = 'errand.sleep(io.open("/proc/self/stat"):read("n") / 1000000)'
    done, report = _lua(case, text, "--seeds", "4", "--repeat", "2")
    assert [failure["class"] for failure in report["failures"]] == ["nondeterministic"], done
    failure = report["failures"][0]
    assert os.path.exists(case.path(failure["log_a"])), failure
    assert os.path.exists(case.path(failure["log_b"])), failure
    assert "  %s diff %s %s\n" % (case.program, failure["log_a"], failure["log_b"]) in done.out, done
    told = case.run("diff", failure["log_a"], failure["log_b"])
    assert told.code == 1 and told.out != "", told
    assert len([name for name in os.listdir(case.folder) if "seed" in name]) == 2
    done, report = _lua(case, "errand.sleep(errand.random())", "--seeds", "4", "--repeat", "2")
    assert done.code == 0, done


def a_failure_that_does_not_come_again_is_marked(case):
    case.write("count", "")
    text = ('local file = io.open("count", "r+") local seen = file:read("a")\n'
            'file:write("x") file:close()\nif #seen == 1 then error("only the second") end')
    done, report = _lua(case, text, "--seeds", "3", "--jobs", "1")
    assert len(report["failures"]) == 1 and not report["failures"][0]["proven"], done
    assert "did not fail again" in done.out, done


# ---- the minimiser ----------------------------------------------------------------------------

def failures_among_calls_in_a_sandbox_come_again(case):
    done, report = _lua(case, """
local errand = require "errand"
local labs = errand.ffi.open(nil, { isolation = "process" }):fn("labs", "i64 (i64)")
local last
local tasks = {}
for i = 1, 2 do tasks[i] = errand.spawn(function() last = labs(-i) end) end
errand.gather(tasks)
if last == 1 then error("the first was the last") end
""", "--seeds", "10", "--repeat", "2")
    assert len(report["failures"]) == 1, done
    assert "the first was the last" in report["failures"][0]["message"], done
    assert "did not fail again" not in done.out, done


def three_of_500_operations_are_found_in_400_runs_and_a_budget_of_40_seconds(case):
    """One by one there were 500 runs for the workload alone; the seconds are the program's to keep."""
    if program_case.SANITIZED:
        raise program_case.Skip("it counts hundreds of runs, and a sanitizer counts the same")
    case.looks_for_no_leaks()
    done, report = _explore(case, _script("stock"), "--stop-after", "1", "--minimise",
                            "--budget", "40", "--jobs", "2")
    failure = report["failures"][0]
    assert failure["minimiser_runs"] <= 400, failure
    assert failure["items_before"] == 500 and failure["items"] <= 5, failure
    assert failure["minimised_proven"], done
    assert failure["minimised_reproduce"] in _lines(case, done.out), done
    again = _again(case, failure["minimised_reproduce"])
    assert again.code == 1 and "the books know of" in again.err, again


def a_small_tape_fails_with_the_same_message(case):
    case.looks_for_no_leaks()
    for name in ("queue",) if program_case.SANITIZED else ("queue", "lease"):
        done, report = _explore(case, _script(name), "--stop-after", "1", "--minimise",
                                "--keep", case.folder)
        failure = report["failures"][0]
        assert failure["minimised_proven"] and failure["choices"] <= 8, (name, failure)
        again = _again(case, failure["minimised_reproduce"])
        assert BUGS[name][1] in again.err, (name, again)


def what_leaves_no_record_is_not_minimised_and_says_why(case):
    done, report = _lua(case, "os.exit(7)", "--seeds", "1", "--minimise")
    assert done.code == 1 and "not minimised: " in done.out, done


# ---- the command line ---------------------------------------------------------------------------

def arguments_and_options_stand_in_the_line(case):
    done, report = _lua(case, 'assert(... == "it\'s", "no")\nerror(select(2, ...))', "--seeds",
                        "1", "--workers", "3", "--deadline", "9", "--policy", "fifo", "--",
                        "it's", "-x")
    line = report["failures"][0]["reproduce"]
    assert "--workers 3" in line and "--deadline 9" in line and "--policy fifo" in line, line
    again = _again(case, line)
    assert "-x" in again.err and again.code == 1, again


def the_reactor_is_the_same_in_every_run_and_stands_in_the_line(case):
    """A race in which the slower of two processes answers first: what it needs is on the reactor."""
    text = """
        local order = {}
        local function ask(name)
            local process <close> = errand.process { "echo", name, input = false }
            order[#order + 1] = process:read()
        end
        errand.gather(errand.spawn(ask, "first"), errand.spawn(ask, "second"))
        assert(order[1] == "first\\n", "the second was first")
    """
    for reactor in ("epoll", "io_uring"):
        done, report = _lua(case, text, "--reactor", reactor, "--seeds", "30", "--stop-after", "1")
        first = report["failures"][0]
        if reactor == "io_uring" and "refuses io_uring" in first["text"]:
            continue
        assert "the second was first" in first["text"] and first["proven"], done
        assert "--reactor " + reactor in first["reproduce"], first
        again = _again(case, first["reproduce"])
        assert again.code == 1 and "the second was first" in again.err, again
    done = case.run("explore", "script.lua", "--reactor", "select")
    assert done.code == 2 and "io_uring or epoll" in done.err, done


def seeds_are_counted_from_1_or_given(case):
    done, report = _lua(case, "error('x')", "--seeds", "3")
    assert report["failures"][0]["seeds"] == [1, 2, 3], report
    done, report = _lua(case, "error('x')", "--seeds", "17..18")
    assert report["failures"][0]["seeds"] == [17, 18], report


def wrong_words_are_named(case):
    case.write("a.lua", "print(1)")
    for words in (["--seeds", "0"], ["--seeds", "9..3"], ["--jobs", "0"], ["--policy", "best"],
                  ["--order", "arrival"], ["--repeat", "3"], ["--timeout", "-1"],
                  ["--budget", "no"], ["--stop-after", "0"]):
        done = case.run("explore", "a.lua", *words)
        assert done.code == 2 and words[0] in done.err and done.out == "", (words, done)
    for words in (["--report", "no/where.json"], ["--report", "a.lua"], ["--keep", "nowhere"],
                  ["--keep", "a.lua"]):
        done = case.run("explore", "a.lua", *words)
        assert done.code == 2 and words[0] in done.err and done.out == "", (words, done)
    with open(case.path("a.lua")) as file:
        assert file.read() == "print(1)"
    assert case.run("explore").code == 2
    assert "a file" in case.run("explore", "-").err
    assert case.run("explore", "nowhere.lua").code == 1


def a_script_that_is_no_lua_is_said_once(case):
    case.write("a.lua", "x = = 1")
    done = case.run("explore", "a.lua")
    assert done.code == 1 and done.err.count("\n") == 1 and "a.lua:1:" in done.err, done


def quiet_says_nothing_but_failures(case):
    case.write("a.lua", "error('x')")
    done = case.run("explore", "-q", "a.lua", "--seeds", "2")
    assert "explored" not in done.out and "failure 1: error" in done.out, done


def a_line_is_as_long_as_its_words(case):
    word = "y" * 9000
    done, report = _lua(case, 'error("no")', "--seeds", "1", "--deadline", "100.123456789",
                        "--", word, "it's\n\u00e9")
    words = shlex.split(report["failures"][0]["reproduce"])
    assert words[-2:] == [word, "it's\n\u00e9"] and "100.123456789" in words, words
    assert report["arguments"] == words[-2:], report["arguments"]


def what_is_no_utf_8_is_in_the_report_nevertheless(case):
    done, report = _lua(case, 'error("\\xff\\xc3\\xa9\\xed\\xa0\\x80")', "--seeds", "1")
    assert "\u00ff\u00e9\u00ed\u00a0\u0080" in report["failures"][0]["text"], report


def without_descriptors_it_says_so_and_ends(case):
    case.write("script.lua", 'require("errand").sleep(0.001)')
    for limit in range(6, 15):
        done = case.run("explore", "script.lua", "--seeds", "9", "--jobs", "3", preexec_fn=lambda:
                        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        assert done.code in (0, 1, 6), (limit, done)
        if "could not be started" in done.err:
            assert done.code != 0, (limit, done)
        else:
            assert "explored 9 seeds" in done.out, (limit, done)


def a_closed_standard_output_is_said(case):
    case.write("script.lua", 'error("no")')
    done = case.run("explore", "script.lua", "--seeds", "2", preexec_fn=lambda: os.close(1))
    assert done.code == 7 and "standard output could not be written" in done.err, done
    with open("/dev/full", "w") as full:
        done = case.run("explore", "script.lua", "--seeds", "2", stdout=full)
    assert done.code == 7 and "No space left on device" in done.err, done


def grandchildren_of_a_killed_run_are_killed_too(case):
    mark = "%d.4321" % os.getpid()
    inner = "setsid sh -c 'setsid sleep 7%s & sleep 7%s' & sleep 7%s" % (mark, mark, mark)
    done, report = _lua(case, "errand.spawn(function() errand.command{'sh', '-c', [[%s]]} end)\n"
                        "errand.sleep(0.5)\nwhile true do end" % inner, "--seeds", "2",
                        "--timeout", "1")
    assert [one["class"] for one in report["failures"]] == ["timeout"], done
    assert not _running(mark), _running(mark)


def an_interrupt_prints_what_was_found(case):
    name = "interrupted-%d.lua" % os.getpid()
    case.write(name, 'local errand = require "errand"\n'
               'if errand.random(2) == 1 then error("x") end\nwhile true do end')
    process = case.start("explore", name, "--jobs", "2", "--report", "r.json")
    limit = time.monotonic() + program_case.LIMIT
    while len(_running(name)) < 3:  # it, and two runs
        assert time.monotonic() < limit, _running(name)
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    done = case.end(process)
    with open(case.path("r.json")) as file:
        report = json.load(file)
    assert report["interrupted"] and "ended by SIGINT" in done.err, done
    assert "explored" in done.out, done
    assert done.code == (1 if report["failures"] else 130), done


def nothing_is_left_running(case):
    case.write("a.lua", 'require "errand".command{"sleep", "4711"}')
    done = case.run("explore", "a.lua", "--seeds", "2", "--timeout", "0.5")
    assert "failure 1: timeout" in done.out, done
    for entry in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % entry, "rb") as file:
                assert file.read() != b"sleep\x004711\x00", entry
        except OSError:
            pass


if __name__ == "__main__":
    program_case.main(globals())
