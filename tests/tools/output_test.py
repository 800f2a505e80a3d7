# SPDX-License-Identifier: MIT
"""What is printed, where, and what happens when it cannot be."""
import os
import pty
import re
import select
import time
import program_case
from program_case import digest_of

ONE_OF_EACH = """
local errand = require 'errand'
errand.write_file('notes.txt', 'four')
print(errand.read_file('notes.txt'))
pcall(errand.read_file, 'gone.txt')
pcall(errand.job, 'panic', 'boom')
"""


def completions_summary_and_digest_are_printed(case):
    for order in ("arrival", "inline"):
        done = case.lua(ONE_OF_EACH, "--order", order, "--seed", "5")
        assert done.code == 0 and done.err == "", done
        for line in (r" completed  write_file notes\.txt: 4 bytes",
                     r" completed  read_file notes\.txt: 4 bytes",
                     r" failed     read_file gone\.txt: .*gone\.txt",
                     r" panicked   panic boom: .*boom"):
            assert re.search(r"^ *\d+\.\d{6} " + line, done.out, re.M), (line, done)
        assert "\nsummary: 4 completions, 2 completed, 1 failed, 1 panicked; " in done.out, done
        digest_of(done.out)


def quiet_prints_what_the_script_prints(case):
    done = case.lua(ONE_OF_EACH, "--quiet")
    assert done.code == 0 and done.out == "four\n" and done.err == "", done


def a_seed_is_drawn_and_repeats_the_run(case):
    text = "print(require 'errand'.random(1, 1 << 60))"
    first = case.lua(text, "--order", "inline")
    second = case.lua(text, "--order", "inline")
    seed = re.search(r"^errand: seed (\d+) ", first.err, re.M).group(1)
    assert first.out != second.out, (first, second)
    again = case.lua(text, "--seed", seed)
    assert again.out == first.out and again.err == "", (first, again)


def late_completions_do_not_count_in_the_digest_of_arrival_order(case):
    text = """
    local errand = require 'errand'
    local first = errand.spawn(errand.command, {'sleep', '0.4'})
    local second = errand.spawn(errand.command, {'sleep', '30'})
    errand.sleep(0.1)
    errand.cancel(second)
    errand.await(first)
    """
    queued, running = case.lua(text, "--workers", "1"), case.lua(text, "--workers", "2")
    assert " cancelled  command sleep 30 (late)" in queued.out, queued
    assert " failed     command sleep 30 (late)" in running.out, running
    assert digest_of(queued.out) == digest_of(running.out), (queued, running)


def a_seed_in_hex_is_the_same_seed(case):
    text = "print(require 'errand'.random(1, 1 << 60))"
    assert case.lua(text, "--seed", "0xff").out == case.lua(text, "--seed", "255").out


def a_name_cannot_forge_a_line(case):
    done = case.lua("local errand = require 'errand'\n"
                    "errand.write_file('x\\ndigest: 0123456789abcdef\\27[2J', '')\n",
                    "--seed", "1")
    assert done.code == 0 and "\x1b" not in done.out, done
    digest_of(done.out)
    assert "x\\x0adigest" in done.out, done


def stats_balance_and_name_the_codes(case):
    done = case.lua(ONE_OF_EACH, "--stats", "--seed", "1", "-q")
    found = re.search(r"accepted (\d+) = queued (\d+) \+ running (\d+) \+ undrained (\d+) \+ "
                      r"drained (\d+) \+ undeliverable (\d+)", done.out)
    numbers = [int(text) for text in found.groups()]
    assert numbers[0] == sum(numbers[1:]) == 4, done
    assert "code PANIC 1" in done.out and "code JOB 1" in done.out, done


def a_trace_has_a_line_for_each_step_and_repeats(case):
    traces = []
    for seed in ("4", "4", "5"):
        done = case.lua(ONE_OF_EACH, "--seed", seed, "--trace", "t.txt")
        assert done.code == 0, done
        with open(case.path("t.txt")) as file:
            traces.append(file.read())
    assert traces[0] == traces[1] and traces[0] != traces[2]
    lines = traces[0].splitlines()
    assert lines[0] == "# errand trace 1", lines
    kinds = [line.split("\t")[2] for line in lines[2:]]
    assert kinds.count("submit") == 4 and kinds.count("completion") == 4, kinds
    assert all(len(line.split("\t")) == 7 for line in lines[2:]), lines
    assert case.lua(ONE_OF_EACH, "--trace", "t.txt").code == 0
    with open(case.path("t.txt")) as file:
        kinds = [line.split("\t")[2] for line in file.read().splitlines()[2:]]
    assert kinds.count("submit") == 4 and kinds.count("completion") == 4, kinds


def a_trace_that_cannot_be_written_is_named(case):
    done = case.lua("print(1)", "--trace", "no/such/folder")
    assert done.code == 2 and "--trace no/such/folder" in done.err and done.out == "", done
    if os.path.exists("/dev/full"):
        done = case.lua("print(1)", "--trace", "/dev/full", "-q")
        assert done.code == 7 and "/dev/full" in done.err, done


def a_full_disk_is_no_success(case):
    if not os.path.exists("/dev/full"):
        raise program_case.Skip("there is no /dev/full")
    with open("/dev/full", "w") as full:
        for words in (["run", "script.lua"], ["run", "script.lua", "-q"], ["help"]):
            case.write("script.lua", ONE_OF_EACH)
            done = case.run(*words, stdout=full)
            assert done.code == 7 and "standard output" in done.err, done


def a_lost_reader_ends_the_run(case):
    case.write("script.lua", "local errand = require 'errand'\n"
               "while true do pcall(errand.stat, '.') end\n")
    process = case.start("run", "script.lua")
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(program_case.LIMIT) == 141, err


# ---- on a terminal ----------------------------------------------------------------------------

def _on_terminal(case, text, *words, stop=None):
    """What a terminal shows, until the end or until it showed `stop`."""
    case.write("script.lua", text)
    ours, theirs = pty.openpty()
    process = case.start("run", "script.lua", *words, stdout=theirs, stderr=theirs,
                         text=False, errors=None, env=dict(case.environment, TERM="xterm"))
    os.close(theirs)
    shown, limit = b"", time.monotonic() + program_case.LIMIT
    while time.monotonic() < limit and (stop is None or stop not in shown):
        ready, _, _ = select.select([ours], [], [], 1)
        try:
            part = os.read(ours, 65536) if ready else b"-"
        except OSError:
            break
        if part == b"":
            break
        shown += part if ready else b""
    return ours, process, shown


def a_long_run_shows_a_bar_that_goes_away(case):
    ours, process, shown = _on_terminal(
        case, "local errand = require 'errand'\nprint('begun')\n"
        "errand.command {'sleep', '1.5'}\nio.write('half')\nprint(' and half')\n")
    os.close(ours)
    assert process.wait(program_case.LIMIT) == 0, shown
    assert b"] 0 of 1" in shown, shown
    # The bar is wiped before each line, and nothing of it is left at the end.
    for line in (b"half and half\r\n", b"digest: "):
        assert line in shown, (line, shown)
    assert b"\r\x1b[K" in shown[shown.rindex(b"] 0 of 1"):], shown


def a_short_run_on_a_terminal_stays_plain(case):
    for _ in range(10):
        start = time.monotonic()
        ours, process, shown = _on_terminal(
            case, "print('begun')\nrequire 'errand'.command {'sleep', '0.25'}\n", "--seed", "1")
        os.close(ours)
        assert process.wait(program_case.LIMIT) == 0, shown
        if time.monotonic() - start < 0.5:
            break  # else the machine was so busy that the run was long
    else:
        raise program_case.Skip("the machine is too busy for a short run")
    assert b"\x1b" not in shown and b"begun\r\n" in shown, shown


def without_a_terminal_there_is_no_bar(case):
    done = case.lua("require 'errand'.command {'sleep', '1'}", env=dict(case.environment,
                                                                       TERM="xterm"))
    assert done.code == 0 and "\x1b" not in done.err + done.out, done


if __name__ == "__main__":
    program_case.main(globals())
