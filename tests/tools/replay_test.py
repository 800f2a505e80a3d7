# SPDX-License-Identifier: MIT
"""errand run --record and --replay: the same output without the files it came from; what differs is named."""
import os
import re
import shutil
import signal
import program_case
from program_case import read_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ORDERS = ("arrival", "inline", "paced")
WORK = """
local errand = require "errand"
for _, entry in ipairs(errand.list_dir("in")) do
  local task = errand.spawn(function() return errand.read_file("in/" .. entry.name) end)
  print(entry.name, (errand.await(task)))
end
print(errand.hash_file("in/a"), errand.stat("in/a").size)
print(errand.job("primes", 1000))
print(pcall(errand.job, "panic", "oh"))
print(pcall(errand.read_file, "missing"))
print(errand.command{"sh", "-c", "cat in/a; exit 3"}.status)
print(errand.now() > 0)
"""
EVENT = """
local errand = require "errand"
local flag = io.open("flag")
errand.await(errand.spawn(function()
  if flag and flag:read("a") == "less" then return end
  errand.list_dir(".")
  if flag then errand.read_file("flag") else errand.list_dir(".") end
end))
"""


def _record(case, order, text, *words):
    done = case.lua(text, "--order", order, "--seed", "5", "--record", "log",
                    "--record-payloads", *words)
    assert done.code == 0, done
    return done


def a_replay_prints_the_same_without_the_files_it_came_from(case):
    """I17."""
    for order in ORDERS:
        case.write("in/a", "first\n")
        case.write("in/b", "second\n")
        before = _record(case, order, WORK)
        shutil.rmtree(case.path("in"))
        after = case.lua(WORK, "--replay", "log")
        assert after.code == 0 and after.out == before.out, (before, after)


PROCESS = """
local errand = require "errand"
local p <close> = errand.process { "cat", errors = "together" }
print(select(2, pcall(p.read_errors, p)).code)
p:write("abc")
print(p:read(), p:kill("CONT"))
p:end_input()
print(p:read(), p:wait().status, p:kill())
local q <close> = errand.process { "true", input = false, errors = "pipe" }
for _, verb in ipairs { "write", "end_input" } do print(select(2, pcall(q[verb], q, "x")).code) end
print(q:read_errors(), q:read(), q:wait().status)
"""


def a_replayed_process_has_the_pipes_that_it_had_and_ends_when_it_ended(case):
    """I17."""
    for order in ORDERS:
        before = _record(case, order, PROCESS)
        assert before.out.splitlines().count("inval") == 3, before
        after = case.lua(PROCESS, "--replay", "log")
        assert after.code == 0 and after.out == before.out, (before, after)


def _before_the_end(order, done):
    """What a replay has to print.  In arrival order the shutdown follows no log: a late completion
    that a slow machine has only there is another one."""
    if order != "arrival":
        return done.out
    return [line for line in done.out.splitlines()
            if not re.match(r" +[0-9.]+ .*\(late\)|summary:", line)]


def the_tour_and_every_example_are_replayed(case):
    case.write("tree/a", "first\n")
    case.write("tree/b/c", "second\n")
    for name in ("tour", "checksums", "gather_and_race", "timeouts"):
        script = os.path.join(ROOT, "examples", name + ".lua")
        words = ("tree",) if name == "checksums" else ()
        for order in ORDERS:
            before = case.run("run", script, *words, "--order", order, "--seed", "2", "--record",
                              "log", "--record-payloads")
            os.rename(case.path("tree"), case.path("gone"))
            after = case.run("run", script, *words, "--replay", "log")
            os.rename(case.path("gone"), case.path("tree"))
            assert before.code == after.code, (before, after)
            assert _before_the_end(order, before) == _before_the_end(order, after), (before, after)


def the_first_event_that_differs_is_named(case):
    for order in ORDERS:
        _record(case, order, EVENT)
        case.write("flag", "other")
        done = case.lua(EVENT, "--replay", "log")
        assert done.code == 9, done
        assert "the log has submission of operation 'list_dir' by task 'task/task'; the run " \
            "came to submission of operation 'read_file' by task 'task/task'" in done.err, done
        case.write("flag", "less")
        done = case.lua(EVENT, "--replay", "log")
        assert done.code == 9, done
        assert "the log has submission of operation 'list_dir' by" in done.err, done
        assert "the run came to the end of task" in done.err, done
        os.unlink(case.path("flag"))


def another_script_or_other_arguments_are_refused(case):
    """I18."""
    _record(case, "inline", WORK.replace("in/", "./").replace('"in"', '"."').replace("./a", "log"),
            "one")
    for text, words, why in ((WORK, ("one",), "its build is another one"),
                             (None, ("two",), "its configuration is another one")):
        if text is not None:
            case.write("other.lua", text)
        done = case.run("run", "script.lua" if text is None else "other.lua", *words,
                        "--replay", "log")
        assert done.code == 2 and why in done.err, done
        assert "this is" in done.err and "recorded with" in done.err, done


def what_a_log_knows_is_not_given_again(case):
    _record(case, "inline", EVENT)
    for words in (("--order", "inline"), ("--seed", "1"), ("--policy", "fifo")):
        done = case.lua(EVENT, "--replay", "log", *words)
        assert done.code == 2 and "leave out %s" % words[0] in done.err, done
    case.write("log", "no log at all")
    done = case.lua(EVENT, "--replay", "log")
    assert done.code == 2 and "give a file that errand run --record wrote" in done.err, done
    done = case.lua(EVENT, "--replay", "none")
    assert done.code == 2 and "No such file" in done.err, done


def policy_and_tape_come_along(case):
    for words in (("--policy", "pct:3:100"), ("--save-tape", "tape")):
        _record(case, "inline", EVENT, *words)
        done = case.lua(EVENT, "--replay", "log")
        assert done.code == 0, done
    _record(case, "inline", EVENT, "--tape", "tape")
    done = case.lua(EVENT, "--replay", "log")
    assert done.code == 2 and "came from a tape" in done.err, done
    done = case.lua(EVENT, "--replay", "log", "--tape", "tape")
    assert done.code == 0, done


def a_log_without_payloads_is_refused_at_the_start(case):
    done = case.lua(EVENT, "--order", "inline", "--seed", "5", "--record", "log")
    assert done.code == 0, done
    done = case.lua(EVENT, "--replay", "log")
    assert done.code == 2 and "recorded without --record-payloads" in done.err, done
    assert done.out == "" and done.err.count("\n") == 1, done
    plain = "local errand = require 'errand' errand.sleep(0.01) print(errand.now())"
    done = case.lua(plain, "--order", "inline", "--seed", "5", "--record", "log")
    again = case.lua(plain, "--replay", "log") # there is no result
    assert again.code == 0 and again.out == done.out, again


def a_script_that_has_changed_is_told_so(case):
    """I18."""
    _record(case, "inline", EVENT)
    done = case.lua(EVENT + " ", "--replay", "log")
    assert done.code == 2 and "its text has changed" in done.err, done


def a_run_that_was_interrupted_is_interrupted_again(case):
    text = """local errand = require "errand"
print("sleeps") io.stdout:flush()
print(pcall(errand.sleep, 100))
"""
    case.write("script.lua", text)
    process = case.start("run", "script.lua", "--record", "log", "--record-payloads")
    said = read_until(process.stdout, "sleeps")
    process.send_signal(signal.SIGINT)
    before = case.end(process, said)
    assert before.code == 130, before
    after = case.run("run", "script.lua", "--replay", "log")
    assert "false" in before.out and after.out.splitlines()[:2] == before.out.splitlines()[:2], \
        (before, after)


def a_run_that_a_signal_ended_is_told_from_one_without_a_reader(case):
    case.write("script.lua", """local errand = require "errand"
print("sleeps") io.stdout:flush()
errand.sleep(100)
""")
    for number in (signal.SIGTERM, signal.SIGINT):
        process = case.start("run", "script.lua", "--record", "log", "--record-payloads")
        said = read_until(process.stdout, "sleeps")
        process.send_signal(number)
        before = case.end(process, said)
        assert before.code == 128 + number, before
        after = case.run("run", "script.lua", "--replay", "log")
        assert after.code == 128 and "SIGPIPE" not in after.err, after
        assert "stopped from outside, as the recorded run was" in after.err, after


if __name__ == "__main__":
    program_case.main(globals())
