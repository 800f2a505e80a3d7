# SPDX-License-Identifier: MIT
"""Traps from outside: the option of errand run, and the library that is loaded before a host which
knows nothing of traps (D141)."""
import os
import re
import subprocess
import program_case

HOST, PRELOAD = os.environ["TRAPS_HOST"], os.environ["TRAPS_PRELOAD"]
PRESENT = os.environ["TRAPS_PRESENT"] == "yes"
CLOCK = "local errand = require 'errand'\nprint(select(2, pcall(errand.job, 'clock')))\n"


def _need():
    if not PRESENT:
        raise program_case.Skip("a sanitizer stands in the calls itself")


def a_seeded_run_refuses_a_jobs_clock_and_says_how_to_mend_it(case):
    _need()
    for words in (("--seed", "1"), ("--order", "inline", "--seed", "1"),
                  ("--seed", "1", "--traps", "refuse")):
        done = case.lua(CLOCK, "-q", *words)
        assert done.code == 0 and "the job called time," in done.out, done
        assert "errand_runtime_now" in done.out and "errand_job_impure" in done.out, done


def warn_says_it_on_standard_error_and_off_says_nothing(case):
    _need()
    done = case.lua(CLOCK, "-q", "--seed", "1", "--traps", "warn")
    assert done.code == 0 and re.fullmatch(r"\d{10}\n", done.out), done
    assert "errand: the job 'clock' called time in a seeded run: " in done.err, done
    done = case.lua(CLOCK, "-q", "--seed", "1", "--traps", "off")
    assert done.code == 0 and re.fullmatch(r"\d{10}\n", done.out) and done.err == "", done


def in_arrival_order_nothing_is_caught(case):
    done = case.lua(CLOCK, "-q", "--traps", "refuse")
    assert done.code == 0 and re.fullmatch(r"\d{10}\n", done.out), done


def another_word_is_refused_with_the_words_there_are(case):
    done = case.lua(CLOCK, "--traps", "maybe")
    assert done.code == 2 and "--traps maybe: give refuse, warn or off" in done.err, done


def _host(order, **more):
    done = subprocess.run([HOST, order], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, LD_PRELOAD=PRELOAD, **more))
    assert done.returncode == 0, done
    return done


def the_library_that_is_loaded_before_catches_too(case):
    _need()
    assert "panicked the job called time," in _host("paced").stdout
    assert _host("arrival").stdout == "completed \n"
    warned = _host("paced", ERRAND_TRAPS="warn")
    assert warned.stdout == "completed \n" and "the job 'look' called time" in warned.stderr
    silent = _host("paced", ERRAND_TRAPS="off")
    assert silent.stdout == "completed \n" and silent.stderr == ""


def what_the_environment_said_is_a_step_that_diff_names(case):
    text = "print(os.getenv('WHO'))\n"
    for who, log in (("ann", "a.log"), ("bob", "b.log")):
        case.environment["WHO"] = who
        assert case.lua(text, "--seed", "1", "--record", case.path(log)).code == 0
    done = case.run("diff", case.path("a.log"), case.path("b.log"))
    assert done.code == 1 and re.search(r"label +getenv +getenv", done.out), done
    assert "noted another value" in done.out, done


def a_note_far_before_the_difference_is_shown(case):
    text = """
        local errand = require "errand"
        local t = {[{}] = 1, [{}] = 1}
        for _ in pairs(t) do end
        for i = 1, 40 do errand.sleep(0.001) end
        print(os.getenv("WHO"))
    """
    for who, log in (("ann", "a.log"), ("bob", "b.log")):
        case.environment["WHO"] = who
        assert case.lua(text, "--seed", "1", "--record", case.path(log)).code == 0
    done = case.run("diff", case.path("a.log"), case.path("b.log"))
    assert done.code == 1 and "note       pairs by address" in done.out, done
    assert done.out.count("pairs by address") == 1, done


def a_recorded_run_of_arrival_order_comes_by_the_same_places_again(case):
    text = """
        local errand = require "errand"
        math.randomseed(os.time())
        local t = {}
        for i = 1, 40 do t["name" .. i] = math.random(1000) end
        for name, number in pairs(t) do
            print(name, number, os.getenv("WHO"))
            errand.await(errand.spawn(function() return number end))
        end
    """
    case.environment["WHO"] = "ann"
    log = case.path("a.log")
    done = case.lua(text, "-q", "--order", "arrival", "--record", log)
    assert done.code == 0, done
    again = case.lua(text, "-q", "--replay", log)
    assert again.code == 0 and again.out == done.out, again
    case.environment["WHO"] = "bob"
    other = case.lua(text, "-q", "--replay", log)
    assert other.code != 0 and "getenv" in other.err, other


def a_loop_over_addresses_is_noted_before_what_hangs_on_it(case):
    # The loop may begin alike in both; errand diff shows the note all the same.
    text = """
        local errand = require "errand"
        local t = {}
        for i = 1, 40 do t[{}] = i end
        errand.sleep(0.1)
        for _, i in pairs(t) do errand.sleep(i / 1000) end
    """
    outs = set()
    for at in range(8):
        assert case.lua(text, "--seed", "1", "--record", case.path("%d.log" % at)).code == 0
        if at == 0:
            continue
        done = case.run("diff", case.path("0.log"), case.path("%d.log" % at))
        outs.add(done.code)
        if done.code == 1:
            assert "note       pairs by address" in done.out, done
            return
    raise program_case.Skip("the addresses came out the same eight times")


if __name__ == "__main__":
    program_case.main(globals())
