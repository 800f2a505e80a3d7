# SPDX-License-Identifier: MIT
"""SIGINT, SIGTERM, SIGHUP: the first asks and leaves time for cleanup, the second ends; SIGXFSZ ends nothing."""
import os
import resource
import signal
import time
import program_case
from program_case import read_until

# Its cleanup awaits; the length of the sleep is a mark to look for among the processes.
CLEANS_UP = """
local errand = require 'errand'
local guard <close> = setmetatable({}, { __close = function()
    errand.shield(function()
        errand.append_file('cleaned.txt', 'cleaned up\\n')
    end)
end })
print('ready')
errand.command { 'sleep', '61.%d' }
"""
STUBBORN = """
local errand = require 'errand'
local guard <close> = setmetatable({}, { __close = function()
    errand.shield(function() errand.sleep(3600) end)
end })
print('ready')
errand.sleep(3600)
"""


def _started(case, text, *words, **options):
    case.write("script.lua", text)
    if "--order" not in words:
        words = (*words, "--order", "arrival")
    # The suite itself may run under nohup.
    options.setdefault("preexec_fn", lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    process = case.start("run", "script.lua", *words, **options)
    return process, read_until(process.stdout, "ready")


def _processes_with(word):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    if word.encode() in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass
    return found


def _wait_for_child(word):
    limit = time.monotonic() + program_case.LIMIT
    while not _processes_with(word):
        assert time.monotonic() < limit, "the child never ran"
        time.sleep(0.005)


def each_signal_stops_the_run_and_its_cleanup_runs(case):
    mark = os.getpid()
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        if os.path.exists(case.path("cleaned.txt")):
            os.remove(case.path("cleaned.txt"))
        process, before = _started(case, CLEANS_UP % mark)
        _wait_for_child("61.%d" % mark)
        process.send_signal(number)
        done = case.end(process, before)
        assert done.code == code, done
        name = signal.Signals(number).name
        assert "%s: the run is asked to end" % name in done.err, done
        assert "by " + name in done.err and "report: accepted" in done.err, done
        assert "clean" in done.err and "not clean" not in done.err, done
        with open(case.path("cleaned.txt")) as file:
            assert file.read() == "cleaned up\n"
        assert not _processes_with("61.%d" % mark), "a child was left behind"


def a_signal_leaves_time_for_the_cleanup_of_every_task(case):
    process, before = _started(case, """
local errand = require 'errand'
local function cleans_up(name, below)
    return function()
        local _, problem = pcall(below)
        print(name, problem.reason)
        local sum = 0
        for i = 1, 1000000 do sum = sum + i end
        errand.shield(function() errand.sleep(0.01) print(name, 'cleaned') end, 3600)
    end
end
local last = cleans_up('last', function() print('ready') errand.sleep(3600) end)
local first = cleans_up('first', function() errand.await(errand.spawn(last)) end)
errand.await(errand.spawn(first))
""")
    process.send_signal(signal.SIGTERM)
    done = case.end(process, before)
    assert done.code == 143 and "report: accepted" in done.err, done
    for name in ("first", "last"):
        assert name + "\thost stop" in done.out and name + "\tcleaned" in done.out, done


def a_second_signal_ends_at_once(case):
    process, _ = _started(case, STUBBORN, "-q")
    process.send_signal(signal.SIGINT)
    said = read_until(process.stderr, "asked to end")
    process.send_signal(signal.SIGINT)
    done = case.end(process)
    assert done.code == 130, done
    # The grace of a second would have ended it too, with a report.
    assert "report" not in said + done.err, done


def cleanup_that_never_ends_is_cut_after_the_grace(case):
    process, before = _started(case, STUBBORN)
    process.send_signal(signal.SIGTERM)
    done = case.end(process, before)
    assert done.code == 143 and "report: accepted" in done.err, done


def a_job_that_is_waited_for_in_inline_order_is_stopped_too(case):
    mark = "62.%d" % os.getpid()
    process, before = _started(
        case, "print('ready')\nrequire 'errand'.command {'sleep', '%s'}\n" % mark, "--order",
        "inline")
    _wait_for_child(mark)
    process.send_signal(signal.SIGINT)
    done = case.end(process, before)
    assert done.code == 130 and "report: accepted 1, drained 1" in done.err, done
    assert not _processes_with(mark), "a child was left behind"


def a_failure_that_nobody_can_await_any_more_is_told_at_once(case):
    process, before = _started(case, """
local errand = require 'errand'
local kept = errand.spawn(function() error('of a task whose handle is kept') end)
for i = 1, 3 do
    errand.spawn(function() error('of handler ' .. i) end)
end
print('ready')
errand.sleep(3600)
print(kept)
""", "-q")
    said = ""
    for _ in range(3):
        said += read_until(process.stderr, "[C]: in ?")
    assert said.count("failed and nobody awaited it: script.lua:5: of handler") == 3, said
    assert "kept" not in said, said
    process.send_signal(signal.SIGTERM)
    done = case.end(process, before)
    said += done.err
    assert done.code == 143 and said.count("script.lua:5: of handler") == 3, (said, done)
    assert said.count("traceback") == 4 and said.count("<script.lua:5>") == 3, (said, done)
    assert done.err.count("script.lua:3: of a task whose handle is kept") == 1, done
    assert "; 4 tasks failed and nobody awaited them; clean" in done.err, done


def a_failure_that_was_told_and_then_fails_the_run_is_told_once(case):
    process, before = _started(case, """
local errand = require 'errand'
errand.spawn(function() error('of a handler') end)
print('ready')
repeat
    errand.sleep(0.01)
    local go = io.open('go')
until go
""", "-q")
    said = read_until(process.stderr, "[C]: in ?")
    case.write("go", "")
    done = case.end(process, before)
    said += done.err
    assert done.code == 1 and said.count("of a handler") == 1, (said, done)
    assert done.err == "errand: task 2 failed and nobody awaited it, as was told then\n", done


def failures_that_nobody_awaited_are_told_at_the_end_of_a_seeded_run(case):
    case.write("script.lua", """
local errand = require 'errand'
for i = 1, 10 do
    errand.spawn(function() error('number ' .. i, 0) end)
end
errand.sleep(0.1)
collectgarbage()
if ... then error('the root too', 0) end
errand.sleep(3600)
""")
    said = set()
    for _ in range(2):
        done = case.run("run", "-q", "--seed", "3", "--deadline", "1", "script.lua")
        assert done.code == 5 and done.err.count("nobody awaited it: number") == 8, done
        assert "2 more tasks failed and nobody awaited them\n" in done.err, done
        said.add(done.err)
    assert len(said) == 1, said
    for order in ("arrival", "inline"):
        done = case.run("run", "-q", "--order", order, "script.lua", "fail")
        assert done.code == 1 and done.err.count("number ") >= 8, done
        assert "errand: the root too\n" in done.err, done


def a_failure_that_is_awaited_later_is_not_told(case):
    case.write("script.lua", """
local errand = require 'errand'
local tasks = {}
for i = 1, 3 do
    tasks[i] = errand.spawn(function() error('number ' .. i) end)
end
errand.sleep(0.01)
collectgarbage()
for i = 1, 3 do
    assert(not pcall(errand.await, tasks[i]))
end
tasks = nil
collectgarbage()
""")
    for order in ("arrival", "inline"):
        done = case.run("run", "-q", "--order", order, "script.lua")
        assert done.code == 0 and done.err == "", done


def a_loop_that_never_waits_is_stopped(case):
    process, before = _started(case, "print('ready')\nwhile true do end\n")
    process.send_signal(signal.SIGINT)
    done = case.end(process, before)
    assert done.code == 130 and "SIGINT" in done.err, done


def an_interrupt_works_where_a_shell_had_it_ignored(case):
    process, before = _started(
        case, "print('ready')\nrequire 'errand'.sleep(3600)\n",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    process.send_signal(signal.SIGINT)
    assert case.end(process, before).code == 130


def a_hangup_stays_ignored_under_nohup(case):
    process, _ = _started(
        case, "local errand = require 'errand'\nprint('ready')\n"
        "while not pcall(errand.stat, 'go') do errand.sleep(0.01) end\n", "-q",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    case.write("go", "")
    done = case.end(process)
    assert done.code == 0 and done.err == "", done


def a_limit_on_file_sizes_ends_no_run(case):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    # What would be ended: by a file's own operations, by each file that a run writes, by what it prints.
    text = ("local errand = require 'errand'\nlocal f = errand.open('big', 'w')\n"
            "for _, size in ipairs { 3000, 9000, 9000 } do\n"
            "  local good, problem = pcall(f.truncate, f, size)\n"
            "  io.stderr:write(good and 'good' or problem.code, '\\n')\nend\n"
            "for _ = 1, 2 do pcall(errand.copy_file, 'many', 'copy') end\n"
            "for _ = 1, 300 do errand.stat('.') end\n")
    case.write("many", "x" * 9000)
    for reactor in ("io_uring", "epoll"):
        done = case.lua(text, "-q", "--reactor", reactor, preexec_fn=limit)
        if "unsupported" not in done.err:
            assert done.code == 0 and done.err == "good\ntoo_large\ntoo_large\n", done
    for words in (["--trace", "trace"], ["--save-tape", "tape"], ["--record", "log"]):
        done = case.lua(text.replace("300", "3000"), "--seed", "1", "-q", *words, preexec_fn=limit)
        assert done.code == 7 and "File too large" in done.err and "ulimit -f" in done.err, done
    with open(case.path("out"), "w") as out:
        done = case.lua("for i = 1, 2000 do print(i) end", "-q", stdout=out, preexec_fn=limit)
    assert done.code == 7 and "File too large" in done.err and "ulimit -f" in done.err, done


if __name__ == "__main__":
    program_case.main(globals())
