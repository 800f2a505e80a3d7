# SPDX-License-Identifier: MIT
"""Ten kinds of nondeterminism, each injected into one of two runs of a seed: errand diff names the
first step that it changed, which the program itself knows, and a hint that fits.  And what it says
of logs that are equal, other, torn and damaged.  ERRAND_TEST_SCALE=10 (./check --long) has ten
seeds for each kind instead of one."""
import json
import os
import subprocess
import program_case

PROGRAMS = os.environ["DIFF_PROGRAMS"]


def _log(case, name, log, how, seed=20):
    """Runs the program; the step that it says the injection changes first."""
    path = case.path(log)
    done = subprocess.run([os.path.join(PROGRAMS, "diff_" + name), path, how, str(seed)],
                          capture_output=True, text=True, timeout=60, env=case.environment)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return int(done.stdout.split()[1])


def _json(case, a, b, code):
    done = case.run("diff", case.path(a), case.path(b), "--json")
    assert done.code == code, done
    return json.loads(done.out)


def _finds_in(case, name, hint, seed):
    plain = _log(case, name, "a.log", "plain", seed)
    again = _log(case, name, "again.log", "plain", seed)
    injected = _log(case, name, "b.log", "injected", seed)
    assert plain == again == injected > 4096, (seed, plain, again, injected)
    equal = _json(case, "a.log", "again.log", 0)
    assert equal["answer"] == "equal", equal
    found = _json(case, "a.log", "b.log", 1)
    assert found["answer"] == "different", found
    assert found["step"] == injected, (seed, found["step"], injected, found["hint"])
    assert found["hint"] == hint, (seed, found)
    assert len(found["common"]) == 20, found
    assert found["common"][-1]["step"] == injected - 1
    said = case.run("diff", case.path("a.log"), case.path("b.log"))
    assert said.code == 1 and "first at step %d," % injected in said.out, said
    assert "hint: " in said.out and "mend: " in said.out, said
    return found, said.out


def _finds(case, name, hint):
    """With the first seed last, whose log the tests look into."""
    for seed in range(20 + program_case.SCALE - 1, 20, -1):
        _finds_in(case, name, hint, seed)
    return _finds_in(case, name, hint, 20)


def a_sleep_by_a_real_clock_is_found(case):
    found, _ = _finds(case, "time", "time")
    assert found["a"]["event"] == "time" and found["a"]["to"] != found["b"]["to"], found


def a_die_that_is_not_errands_is_found(case):
    found, _ = _finds(case, "random", "value")
    assert found["a"]["label"] == "die" and found["a"]["bytes"] == "00", found


def a_choice_by_address_is_found(case):
    found, _ = _finds(case, "pointer_order", "address")
    assert found["b"]["label"] == "item", found


def another_order_of_the_same_ready_tasks_is_found(case):
    found, out = _finds(case, "ready_order", "other-task")
    assert found["a"]["ready set"] == found["b"]["ready set"], found
    assert found["a"]["task"].startswith("top/victim/"), found
    assert "top/victim/" in out


def one_bit_of_a_result_is_found(case):
    found, _ = _finds(case, "result", "result")
    assert found["a"]["operation"] == found["b"]["operation"] == "top/victim/flaky", found
    assert found["a"]["digest"] != found["b"]["digest"], found


def a_wake_too_many_is_found(case):
    found, _ = _finds(case, "extra_wake", "ready-set")
    assert found["a"]["ready set"] != found["b"]["ready set"], found


def a_wake_too_few_is_found(case):
    found, _ = _finds(case, "dropped_wake", "ready-set")
    assert found["a"]["ready set"] != found["b"]["ready set"], found


def the_order_of_a_hash_table_is_found(case):
    found, _ = _finds(case, "hash_order", "order")
    assert (found["a"]["label"], found["b"]["label"]) == ("ash", "cedar"), found


def a_byte_that_nobody_wrote_is_found(case):
    found, _ = _finds(case, "uninitialised", "result")
    assert found["a"]["operation"] == "top/victim/padded", found
    assert found["b"]["bytes"].startswith("78a5a5a5"), found


def a_timeout_by_a_real_clock_is_found(case):
    found, _ = _finds(case, "real_timeout", "extra")
    assert found["b"]["event"] == "cancel", found
    assert found["b"]["task"] == "top/parked", found


# ---- logs that are not whole -------------------------------------------------------------------

def _pair(case):
    step = _log(case, "result", "a.log", "plain")
    _log(case, "result", "b.log", "injected")
    with open(case.path("b.log"), "rb") as file:
        return step, file.read()


def a_torn_log_still_shows_a_difference_before_its_end(case):
    step, data = _pair(case)
    case.write("b.log", data[:-100])
    done = case.run("diff", case.path("a.log"), case.path("b.log"))
    assert done.code == 1 and "step %d," % step in done.out, done
    assert "b.log: " in done.err and "cut" in done.err, done


def a_torn_log_without_a_difference_cannot_be_told(case):
    step, data = _pair(case)
    case.write("b.log", data[:len(data) // 8])
    done = case.run("diff", case.path("a.log"), case.path("b.log"))
    assert done.code == 2, done
    assert "equal as far as both can be read" in done.out and "cut" in done.err, done
    assert _json(case, "a.log", "b.log", 2)["answer"] == "unknown"


def a_damaged_block_is_named(case):
    _, data = _pair(case)
    at = len(data) // 3
    case.write("b.log", data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
    done = case.run("diff", case.path("a.log"), case.path("b.log"))
    assert "block " in done.err and "is damaged: steps " in done.err, done
    printed = case.run("log", case.path("b.log"))
    assert printed.code == 2 and "is damaged" in printed.err, printed


def what_is_no_log_is_said_to_be_none(case):
    step, _ = _pair(case)
    other = case.write("notes.txt", "no log at all\n")
    for words in (("diff", case.path("a.log"), other), ("diff", other, case.path("a.log")),
                  ("log", other), ("diff", case.path("none"), other)):
        done = case.run(*words)
        assert done.code == 2 and done.out == "", done
        assert done.err.startswith("errand: ") and done.err.count("\n") == 1, done


# ---- the program's own recorder ----------------------------------------------------------------------

SCRIPT = """
local errand = require "errand"
local tasks = {}
for i = 1, tonumber((...) or 3) do
    tasks[i] = errand.spawn(function() errand.sleep(0.001 * i) end)
end
for _, task in ipairs(tasks) do errand.await(task) end
"""


def a_recorded_run_is_equal_to_itself_and_not_to_another_seed(case):
    for name, seed in (("a.log", "1"), ("b.log", "1"), ("c.log", "2")):
        done = case.lua(SCRIPT, "--seed", seed, "--record", case.path(name), "-q")
        assert done.code == 0, done
    assert _json(case, "a.log", "b.log", 0)["answer"] == "equal"
    found = _json(case, "a.log", "c.log", 1)
    assert found["hint"] == "seed", found
    assert found["headers"] == [{"name": "seed", "a": "1", "b": "2"}], found


def another_script_or_argument_is_another_build(case):
    case.lua(SCRIPT, "--seed", "1", "--record", case.path("a.log"))
    case.lua(SCRIPT, "4", "--seed", "1", "--record", case.path("b.log"))
    assert _json(case, "a.log", "b.log", 1)["hint"] == "build"
    case.lua(SCRIPT + "errand.sleep(1)\n", "--seed", "1", "--record", case.path("b.log"))
    found = _json(case, "a.log", "b.log", 1)
    assert found["hint"] == "build", found
    assert found["headers"][0]["name"] == "build", found


def a_log_can_be_printed_as_text_and_as_json(case):
    case.lua(SCRIPT, "--seed", "1", "--record", case.path("a.log"))
    done = case.run("log", case.path("a.log"))
    assert done.code == 0 and done.err == "", done
    assert "seed 1" in done.out.splitlines()[0], done
    assert any("spawn" in line and line.endswith("/task#2")
               for line in done.out.splitlines()), done
    assert "the run ended OK, clean" in done.out.splitlines()[-1], done
    lines = case.run("log", case.path("a.log"), "--json").out.splitlines()
    steps = [json.loads(line) for line in lines]
    assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))


OUTPUT = """
local errand = require "errand"
errand.command { "cat", "in" }
"""


def the_bytes_that_differ_are_shown_wherever_they_are(case):
    """And errand log --bytes has all of them."""
    for name, letter in (("a.log", b"b"), ("b.log", b"c")):
        case.write("in", b"a" * 4000 + letter + b"a" * 50)
        done = case.lua(OUTPUT, "--seed", "1", "--record", case.path(name), "--record-payloads")
        assert done.code == 0, done
    said = case.run("diff", case.path("a.log"), case.path("b.log")).out
    rows = [line for line in said.splitlines() if "aaab" in line or "aaac" in line]
    assert len(rows) == 2 and "at 40" in rows[0] and "ab" in rows[0] and "ac" in rows[1], said
    found = _json(case, "a.log", "b.log", 1)
    assert "6162" in found["a"]["bytes"] and "6163" in found["b"]["bytes"], found
    assert found["a"]["bytes_from"] >= 4000 - 8, found
    dump = case.run("log", case.path("a.log"), "--bytes").out
    assert dump.count("6161616161616161 6161616161616161  aaaaaaaaaaaaaaaa") > 240, dump
    steps = [json.loads(line)
             for line in case.run("log", case.path("a.log"), "--bytes", "--json").out.splitlines()]
    assert any("61" * 4000 + "62" in step.get("bytes", "") for step in steps), steps
    case.lua(OUTPUT, "--seed", "1", "--record", case.path("c.log"))
    case.write("in", "other")
    case.lua(OUTPUT, "--seed", "1", "--record", case.path("d.log"))
    assert "--record-payloads shows" in _json(case, "c.log", "d.log", 1)["mend"]


def two_runs_of_arrival_order_are_not_meant_to_be_equal(case):
    for name in ("a.log", "b.log"):
        case.lua('require("errand").random(1000000000)', "--record", case.path(name), "-q")
    found = _json(case, "a.log", "b.log", 1)
    assert found["hint"] == "arrival" and "--order paced" in found["mend"], found
    said = case.run("diff", case.path("a.log"), case.path("b.log")).out
    assert not any(line.startswith("* time ") for line in said.splitlines()), said


def a_log_that_cannot_be_written_is_code_7_and_the_run_goes_on(case):
    if not os.path.exists("/dev/full"):
        raise program_case.Skip("no /dev/full")
    done = case.lua(SCRIPT + "print('to the end')", "--seed", "1", "--record", "/dev/full")
    assert done.code == 7 and "to the end" in done.out, done
    assert "--record /dev/full: the log is not complete: " in done.err, done
    done = case.lua(SCRIPT, "--record", case.path("no", "folder"))
    assert done.code == 2 and "give a file that can be written" in done.err, done


def the_command_line_says_what_it_needs(case):
    for words, what in ((("diff", "one"), "two logs"), (("log",), "one log"),
                        (("run", "x.lua", "--record-payloads"), "--record FILE")):
        done = case.run(*words)
        assert done.code == 2 and what in done.err, done
    for topic in ("log", "diff"):
        for words in (("help", topic), (topic, "--help")):
            done = case.run(*words)
            assert done.code == 0 and done.out.startswith("errand " + topic), done


if __name__ == "__main__":
    program_case.main(globals())
