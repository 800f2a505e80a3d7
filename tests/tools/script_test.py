# SPDX-License-Identifier: MIT
"""Scripts that are good and bad: messages with file and line, and the exit codes."""
import os
import program_case


def _failed(done, code, *texts):
    assert done.code == code, done
    for text in texts:
        assert text in done.err, (text, done)


def a_script_that_ends_well_answers_0(case):
    done = case.lua("print('hello')\nreturn 1, nil, {}\n", "-q")
    assert done.code == 0 and done.out == "hello\n" and done.err == "", done


def a_missing_script_is_named(case):
    _failed(case.run("run", "gone.lua"), 1, "gone.lua: No such file", "check the path")


def a_folder_is_no_script(case):
    os.mkdir(case.path("folder.lua"))
    _failed(case.run("run", "folder.lua"), 1, "folder.lua: Is a directory")


def an_unreadable_script_is_named(case):
    os.chmod(case.write("secret.lua", "print(1)"), 0)
    options = {}
    if os.geteuid() == 0:  # root may read everything
        os.chmod(case.folder, 0o755)
        options = {"user": 65534}
        try:
            able = case.run("--version", **options).code == 0
        except PermissionError:
            able = False
        if not able:
            raise program_case.Skip("root may read everything, and nobody else may run this")
    _failed(case.run("run", "secret.lua", **options), 1, "secret.lua: Permission denied")


def an_empty_script_is_named(case):
    for text in ("", "\n  \n", "\ufeff", "#!/usr/bin/env errand\n"):
        _failed(case.lua(text), 1, "script.lua:1: the script is empty")


def a_syntax_error_has_file_and_line(case):
    done = case.lua("local x = 1\nlocal = 2\n")
    _failed(done, 1, "script.lua:2: ")
    assert done.out == "", done


def compiled_lua_is_refused(case):
    _failed(case.lua(b"\x1bLua\x54\x00\x19\x93\r\n\x1a\n" + bytes(40)), 1, "script.lua",
            "binary")


def without_catch_the_first_failure_ends_the_run(case):
    # D70
    text = ("local errand = require 'errand'\n"
            "local t = errand.spawn(function() error('first') end)\n"
            "pcall(errand.await, t)\nprint('went on')\n")
    done = case.lua(text, "-q")
    assert done.code == 0 and done.out == "went on\n", done
    done = case.lua(text, "-q", "--no-catch")
    _failed(done, 1, "script.lua:2: first")
    assert done.out == "", done


def an_error_has_file_line_and_traceback(case):
    done = case.lua("local function f()\n  error('oh no')\nend\nf()\n")
    _failed(done, 1, "script.lua:2: oh no", "traceback")


def an_error_that_is_no_text_is_shown(case):
    _failed(case.lua("error({})"), 1, "table", "__tostring")
    _failed(case.lua("error({code = 5, message = 'it broke', other = {}})"), 1,
            "code = 5, message = it broke", "__tostring")
    _failed(case.lua("error({'first'})"), 1, "[1] = first")
    _failed(case.lua("error(setmetatable({}, {__tostring = function() return 'spoke' end}))"),
            1, "spoke")
    _failed(case.lua("error()"), 1, "errand: ")


def an_operation_that_fails_names_its_line(case):
    _failed(case.lua("local errand = require 'errand'\n\nerrand.read_file('gone.txt')\n"), 1,
            "script.lua:3: read_file: ", "gone.txt")


def a_task_that_nobody_awaited_fails_the_run(case):
    _failed(case.lua("local errand = require 'errand'\n"
                     "errand.spawn(function() error('alone') end)\nerrand.sleep(0.01)\n"), 1,
            "script.lua:2: alone")


def a_stall_lists_who_waits_and_where(case):
    text = ("local errand = require 'errand'\nlocal a, b\n"
            "a = errand.spawn(function() errand.await(b) end)\n"
            "b = errand.spawn(function() errand.await(a) end)\nerrand.await(a)\n")
    for order in ("arrival", "inline"):
        _failed(case.lua(text, "--order", order, "--seed", "1"), 4, "await", "script.lua:3",
                "script.lua:4", "script.lua:5")
        done = case.lua(text, "--order", order, "--seed", "1")
        _failed(done, 4, "  the root task waits in await for task 2 at script.lua:5\n",
                "  task 2 (its function is at script.lua:3) waits in await for task 3 at "
                "script.lua:3\n")


def the_deadline_ends_a_wait(case):
    text = "require 'errand'.sleep(3600)"
    for order in ("arrival", "inline"):
        _failed(case.lua(text, "--order", order, "--seed", "1", "--deadline", "0.05"), 5,
                "0.05", "--deadline")


def the_deadline_ends_a_loop_that_never_waits(case):
    for order in ("arrival", "inline"):
        _failed(case.lua("while true do end", "--order", order, "--deadline", "0.1"), 5,
                "deadline")


def a_first_line_for_the_system_keeps_line_numbers(case):
    done = case.lua("#!/usr/bin/env -S errand run\nprint('ran')\nerror('here')\n", "-q")
    _failed(done, 1, "script.lua:3: here")
    assert done.out == "ran\n", done


def standard_input_is_a_script(case):
    path = case.write("in.lua", "print('from outside')\nerror('x')\n")
    with open(path) as file:
        done = case.run("run", "-", "-q", stdin=file)
    _failed(done, 1, "stdin:2: x")
    assert done.out == "from outside\n", done


def native_jobs_work_and_check_their_arguments(case):
    done = case.lua("local errand = require 'errand'\n"
                    "print(errand.job('primes', 100), errand.job('primes', 0))\n"
                    "print(pcall(errand.job, 'primes', -1))\n"
                    "print(pcall(errand.job, 'primes'))\n"
                    "local good, problem = pcall(errand.job, 'panic', 'boom')\n"
                    "print(good, problem.code, problem.message)\n"
                    "print(select(2, pcall(errand.job, 'nothing')).code)\n", "-q")
    lines = done.out.splitlines()
    assert done.code == 0 and len(lines) == 5, done
    assert lines[0] == "25\t0" and lines[1].startswith("false"), done
    assert "#2" in lines[1] and "#2" in lines[2], done
    assert lines[3].startswith("false\tpanic") and "boom" in lines[3], done
    assert lines[4] == "unknown_job", done


def leaving_by_os_exit_keeps_the_code(case):
    for text in ("os.exit(9)", "os.exit(9, true)",
                 "require 'errand'.spawn(function() os.exit(9, true) end)\n"
                 "require 'errand'.command {'sleep', '0.2'}"):
        done = case.lua(text, "-q")
        assert done.code == 9, done


def a_name_from_outside_does_not_steer_the_terminal(case):
    text = 'require("errand").read_file("no\\27[31mred")\n'
    done = case.lua(text, "-q", "--seed", "1")
    assert done.code == 1 and "\x1b" not in done.err + done.out, done
    assert "cannot open 'no\\x1b[31mred'" in done.err, done


def a_text_of_an_error_that_never_ends_holds_nothing_up(case):
    text = """
local errand = require 'errand'
local function loop() while true do end end
local function fail(how) errand.spawn(error, setmetatable({}, { __tostring = how })) end
fail(loop)
fail(coroutine.wrap(function() while true do pcall(loop) end end))
fail(coroutine.yield)
errand.yield()
fail(function() local left <close> = setmetatable({}, { __close = print }) error('no') end)
fail(function() return 'the last one' end)
errand.sleep(0.1)
collectgarbage()
"""
    for order in ("arrival", "inline"):
        done = case.lua(text, "--order", order, "--seed", "1", "-q")
        for task in range(2, 6): # the first is also what the run ends with
            assert "task %d failed and nobody awaited it: (error object is a table value with a " \
                   "broken __tostring)" % task in done.err, done
        assert done.code == 1 and "the last one" in done.err and "script.lua:9: no" in done.out, done


if __name__ == "__main__":
    program_case.main(globals())
