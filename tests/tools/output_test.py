# SPDX-License-Identifier: MIT
"""What is printed, where, and what happens when it cannot be."""
import fcntl
import os
import pty
import re
import select
import socket
import termios
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


def _times(out):
    return [float(text) for text in re.findall(r"^ *(\d+\.\d{6})  ", out, re.M)]


def no_completion_is_later_than_the_end(case):
    late = "errand.spawn(errand.command, {'sleep', '30'})\nerrand.sleep(0.05)\n"
    for text in ("errand.stat('.')", late):
        for order in ("arrival", "inline"):
            done = case.lua("local errand = require 'errand'\n" + text, "--order", order,
                            "--seed", "1")
            end = float(re.search(r"^summary: .*; (\d+\.\d{6}) s", done.out, re.M).group(1))
            times = _times(done.out)
            assert len(times) == 1 and times[0] <= end, done
    # One clock: what is awaited last ends when the run does, or a moment before.
    done = case.lua("print(require 'errand'.stat('.') and require 'errand'.now())", "--order",
                    "arrival", "--seed", "1")
    now = float(re.search(r"^(\d+\.\d+)$", done.out, re.M).group(1))
    assert _times(done.out)[0] <= now + 1e-6, done


def counts_are_singular_for_one(case):
    case.write("f/one", "x")
    done = case.lua("local errand = require 'errand'\nerrand.read_file('f/one')\n"
                    "errand.list_dir('f')\nerrand.hash_file('f/one')\n"
                    "errand.write_file('f/one', 'y')", "--seed", "1")
    assert "f/one: 1 byte\n" in done.out and "list_dir f: 1 entry\n" in done.out, done
    assert re.search(r"hash_file f/one: [0-9a-f]{16}, 1 byte\n", done.out), done
    assert done.out.count("1 byte\n") == 3, done
    done = case.lua("require 'errand'.stat('.')", "--seed", "1")
    assert "summary: 1 completion, 1 completed" in done.out, done


def an_open_line_is_ended_before_a_line_of_the_programs(case):
    done = case.lua("local errand = require 'errand'\nio.write('half')\nerrand.stat('.')\n"
                    "io.write('end')", "--seed", "1", "--stats")
    assert re.match(r"half\n +\d+\.\d{6}  completed  stat [^\n]*\nend\nsummary: ",
                    done.out), done
    done = case.lua("io.write('end')", "--seed", "1", "--stats", "-q")
    assert done.out.startswith("end\naccounts: "), done
    assert case.lua("io.write('end')", "--seed", "1", "-q").out == "end"


def the_digest_of_nothing_is_that_of_the_manual(case):
    assert digest_of(case.lua("print(1)", "--order", "arrival").out) == "cbf29ce484222325"


def what_a_drawn_seed_repeats_is_said_as_it_is(case):
    text = "print(require 'errand'.random(0))"
    for order, option in (("arrival", "--order arrival --seed "), ("inline", "--seed ")):
        first = case.lua(text, "--order", order)
        seed = re.search(r"^errand: seed (\d+) \(drawn; " + option + r"\1 ", first.err,
                         re.M).group(1)
        again = case.lua(text, *option.split(), seed)
        assert again.out.splitlines()[0] == first.out.splitlines()[0], (first, again)


def tasks_that_end_with_the_script_are_counted(case):
    text = ("local errand = require 'errand'\nlocal kept = errand.spawn(errand.sleep, 5)\n"
            "errand.spawn(errand.spawn, errand.sleep, 5)\nerrand.spawn(function() end)\n"
            "local stopped = errand.spawn(errand.sleep, 5)\nerrand.sleep(0.01)\n"
            "errand.cancel(stopped)\npcall(errand.await, stopped)\n")
    for order in ("arrival", "inline"):
        words = ("--order", order, "--seed", "1")
        done = case.lua(text, *words)
        assert done.code == 0 and done.err.startswith("errand: 1 task was aborted"), done
        assert "await" in done.err and done.err.count("\n") == 1, done
        assert case.lua(text, *words, "-q").err == ""
        done = case.lua("local errand = require 'errand'\n"
                        "for _ = 1, 3 do errand.spawn(errand.sleep, 5) end", *words)
        assert done.code == 0 and "3 tasks were aborted" in done.err, done


def quiet_prints_what_the_script_prints(case):
    done = case.lua(ONE_OF_EACH, "--quiet")
    assert done.code == 0 and done.out == "four\n" and done.err == "", done


def a_seed_is_drawn_and_repeats_the_run(case):
    # D152
    text = "print(require 'errand'.random(1, 1 << 60))"
    first = case.lua(text, "--order", "inline")
    second = case.lua(text, "--order", "inline")
    seed = re.search(r"^errand: seed (\d+) ", first.err, re.M).group(1)
    assert first.out != second.out, (first, second)
    again = case.lua(text, "--seed", seed)
    assert again.out == first.out and again.err == "", (first, again)


def a_deadline_goes_by_the_clock_of_its_order(case):
    # D152: half a virtual hour passes in no time, and a real second is none of virtual time.
    text = "require 'errand'.sleep(3600)"
    for order in ("inline", "paced"):
        done = case.lua(text, "--order", order, "--seed", "1", "--deadline", "1800")
        assert done.code == 5 and "1800.000000 s virtual" in done.out, done
        done = case.lua("local e = require 'errand' e.command {'sleep', '1'}", "--order",
                        order, "--seed", "1", "--deadline", "0.4")
        assert done.code == 0, done


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
        assert "No space left" in done.err and "free some space" in done.err, done


def a_closed_output_is_named(case):
    done = case.lua("print(1)", "-q", preexec_fn=lambda: os.close(1))
    assert done.code == 7 and "it is closed" in done.err, done


def a_script_may_seek_in_its_output(case):
    with open(case.path("out"), "w") as file:
        assert case.lua("print('first') assert(io.stdout:seek('set', 0)) print('again')", "-q",
                        stdout=file).code == 0
    with open(case.path("out")) as file:
        assert file.read() == "again\n"


def a_long_message_is_written_in_few_pieces(case):
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        process = case.start("run", case.write("script.lua", "error(('x'):rep(2000) .. '\\27' .. "
                                                             "('y'):rep(2000))"), "-q", stderr=far)
        far.close()
        assert case.end(process).code == 1
        pieces = []
        while piece := near.recv(65536):
            pieces.append(piece)
    said = b"".join(pieces)
    assert b"x" * 2000 + b"\\x1b" + b"y" * 2000 in said and len(pieces) < 100, (len(pieces), said[:99])


def a_full_disk_is_no_success(case):
    if not os.path.exists("/dev/full"):
        raise program_case.Skip("there is no /dev/full")
    with open("/dev/full", "w") as full:
        for words in (["run", "script.lua"], ["run", "script.lua", "-q"], ["help"]):
            case.write("script.lua", ONE_OF_EACH)
            done = case.run(*words, stdout=full)
            assert done.code == 7 and "standard output" in done.err, done
            assert "No space left" in done.err and "free some space" in done.err, done
            assert done.err.count("standard output") == 1, done
        # stdio forgets why the script's own write failed.
        case.write("script.lua", "print(1)\nio.stdout:setvbuf('no')\nrequire 'errand'.yield()")
        for words in ([], ["-q"]):
            done = case.run("run", "script.lua", *words, stdout=full)
            assert done.code == 7 and "No space left" in done.err, done


def a_lost_reader_ends_the_run(case):
    case.write("script.lua", "local errand = require 'errand'\n"
               "while true do pcall(errand.stat, '.') end\n")
    process = case.start("run", "script.lua")
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(program_case.LIMIT) == 141, err


def a_lost_reader_ends_a_script_that_only_prints(case):
    case.write("script.lua", "while true do print(1) end\n")
    process = case.start("run", "script.lua", "-q")
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
                         text=False, errors=None,
                         preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0), env=dict(case.environment, TERM="xterm"))
    os.close(theirs)
    return ours, process, _shown_until(ours, stop)


def _shown_until(ours, stop):
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
    return shown


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


def quiet_shows_no_bar(case):
    ours, process, shown = _on_terminal(case, "require 'errand'.command {'sleep', '1'}", "-q")
    os.close(ours)
    assert process.wait(program_case.LIMIT) == 0 and shown == b"", shown


def an_interrupt_wipes_the_bar_and_leaves_none(case):
    stubborn = ("local errand = require 'errand'\nlocal guard <close> = setmetatable({}, "
                "{ __close = function() errand.shield(function() errand.sleep(60) end, 60) end })\n"
                "errand.sleep(60)\n")
    ours, process, shown = _on_terminal(case, stubborn, stop=b"] waiting")
    os.write(ours, b"\x03")
    shown = _shown_until(ours, b"at once\r\n")
    # Neither the bar nor the terminal's ^C stands before the text.
    assert b"\r\x1b[Kerrand: SIGINT: the run is asked to end" in shown, shown
    shown = _shown_until(ours, b"] waiting")
    os.write(ours, b"\x03")
    shown = _shown_until(ours, None)
    os.close(ours)
    assert process.wait(program_case.LIMIT) == 130, shown
    assert shown.endswith(b"\r\x1b[K"), shown


def a_message_on_a_terminal_begins_a_line(case):
    ours, process, shown = _on_terminal(case, "io.write('half')\nio.flush()\nerror('oh no', 0)",
                                        "-q")
    os.close(ours)
    assert process.wait(program_case.LIMIT) == 1, shown
    assert shown.startswith(b"half\r\nerrand: oh no\r\n"), shown


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


def what_is_out_when_the_script_ends_changes_no_line(case):
    text = """local errand = require "errand"
for i = 1, 6 do
    for _, free in ipairs { false, true } do
        errand.spawn(function()
            pcall(errand.timeout, 0.05, errand.command, {"sleep", "0.0" .. i, effect_free = free})
        end)
    end
end
errand.sleep(0.051)"""
    seen = set()
    for words in (["inline"], ["paced", "--workers", "1"], ["paced", "--workers", "4"]):
        for _ in range(2):
            done = case.lua(text, "--seed", "6", "--stats", "--order", *words)
            assert done.code == 0 and "not clean" not in done.err, done
            seen.add(done.out)
    assert len(seen) == 1 and "ended with the script; " in seen.pop(), seen
    for order in ("inline", "paced"):
        case.lua(text, "--seed", "6", "--order", order, "--record", order + ".log")
    done = case.run("diff", "inline.log", "paced.log")
    # What the shutdowns tell is of real time: there is some of it, or none.
    assert done.code == 0 and "equal: " in done.out, done


def a_closed_standard_output_is_no_file_of_the_run(case):
    case.write("script.lua", 'print("a line")')
    done = case.run("run", "script.lua", "--seed", "1", "--record", "a.log",
                    preexec_fn=lambda: (os.close(0), os.close(1)))
    assert done.code == 7, done
    with open(case.path("a.log"), "rb") as file:
        assert b"a line" not in file.read()
    assert case.run("log", "a.log").code == 0


def devices_and_pipes_are_no_tapes_and_no_logs(case):
    os.mkfifo(case.path("pipe"))
    case.write("script.lua", "local nothing")
    for words in (["log", "pipe"], ["run", "script.lua", "--record", "pipe"],
                  ["run", "script.lua", "--tape", "/dev/zero"]):
        done = case.run(*words)
        assert done.code == 2 and words[-1] in done.err, done


if __name__ == "__main__":
    program_case.main(globals())
