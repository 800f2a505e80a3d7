# SPDX-License-Identifier: MIT
"""errand call and errand doctor: one foreign call from the command line, in a process and in a
thread; whatever the function does is said, and the program goes on."""
import json
import os
import shutil
import subprocess
import program_case

CRC = ("libz.so.1", "crc32", "u64 (u64, bytes, u32)", "0", "hello", "5")


def _call(case, *words, code=0):
    done = case.run("call", *words)
    assert done.code == code, done
    return done


def a_call_gives_its_result_in_both_tiers(case):
    for tier in ("process", "thread"):
        done = _call(case, "--isolation", tier, "-", "labs", "i64 (i64)", "-7")
        assert done.out == "7\n" and done.err == "", done


def a_real_library_is_called(case):
    done = case.run("call", *CRC)
    if done.code == 1 and "libz.so.1" in done.err:
        raise program_case.Skip("libz.so.1 is not installed")
    assert done.out == "907060870\n", done


def variadic_calls_and_outputs_are_printed(case):
    done = _call(case, "-", "snprintf", "i32 (out bytes, u64, string, ..., i32, f64)", "64",
                 "64", "%d %.2f", "7", "2.5")
    assert done.out == '6\nargument 1: "7 2.50" and 58 zero bytes\n', done


def the_worker_is_found_however_the_program_was(case):
    decoy = case.write("libexec/errand-worker", "#!/bin/sh\ntouch %s\n" % case.path("ran"))
    os.chmod(decoy, 0o755)
    os.symlink(case.program, case.path("link"))
    path = os.path.dirname(case.program) + ":" + os.environ["PATH"]
    for name in ("errand", case.path("link")):  # by PATH, by a link beside another libexec
        done = subprocess.run([name, "call", "-", "labs", "i64 (i64)", "-7"], text=True,
                              capture_output=True, cwd=case.folder,
                              env=dict(case.environment, PATH=path))
        assert done.returncode == 0 and done.stdout == "7\n", (name, done)
    assert not os.path.exists(case.path("ran"))


def a_program_without_its_worker_says_where_it_looked(case):
    alone = case.path("bin", "errand")
    os.makedirs(case.path("bin"))
    shutil.copy(case.program, alone)
    done = subprocess.run([alone, "call", "-", "labs", "i64 (i64)", "-7"], text=True,
                          capture_output=True, cwd=case.folder, env=case.environment)
    if done.returncode == 0:
        raise program_case.Skip("a worker is installed where this build's would be")
    assert done.returncode == 6, done
    assert "errand-worker was not found: looked for libexec/errand-worker in %s/ and the four" \
        % os.path.realpath(case.path("bin")) in done.stderr, done
    assert "/libexec/errand-worker; install it, or name it by worker_path" in done.stderr, done
    assert "--worker FILE" in done.stderr, done


def a_worker_that_others_could_replace_is_not_used(case):
    """It starts by its name again and again, as whoever the host is."""
    alone = case.path("bin", "errand")
    os.makedirs(case.path("bin"))
    shutil.copy(case.program, alone)
    decoy = case.write("libexec/errand-worker", "#!/bin/sh\ntouch %s\n" % case.path("ran"))
    os.chmod(decoy, 0o755)

    def call():
        return subprocess.run([alone, "call", "-", "labs", "i64 (i64)", "-7"], text=True,
                              capture_output=True, cwd=case.folder, env=case.environment)

    os.chmod(case.path("libexec"), 0o777)
    done = call()
    assert not os.path.exists(case.path("ran")), done
    if done.returncode != 0:  # else a worker is installed where this build's would be
        assert "%s is not used, because others may put something else there" \
            % os.path.realpath(decoy) in done.stderr.replace("bin/../", ""), done
    os.chmod(case.path("libexec"), 0o1777)  # only owners may replace what is there
    call()
    assert os.path.exists(case.path("ran"))


def a_library_may_be_given_by_a_relative_path(case):
    case.write("there/none.so", "no library")
    for tier in ("process", "thread"):
        done = _call(case, "--isolation", tier, "there/none.so", "f", "void ()", code=1)
        assert case.path("there/none.so") in done.err, done


def a_library_here_without_a_folder_is_told_how_to_be_written(case):
    case.write("none.so", "no library")
    done = _call(case, "none.so", "f", "void ()", code=1)
    assert "the file here is ./none.so" in done.err, done


def a_relative_path_without_a_file_is_told_so(case):
    for tier in ("process", "thread"):
        done = _call(case, "--isolation", tier, "./gone.so", "f", "void ()", code=1)
        assert "./gone.so: " in done.err and "No such file or directory" in done.err, done


def a_path_may_count_from_the_current_folder(case):
    case.write("below/text", "inside")
    done = _call(case, "--promise", "rpath", "--path", "below", "-", "labs", "i64 (i64)", "-7")
    assert done.out == "7\n", done


def arguments_beyond_the_limit_are_told_and_can_be_let_in(case):
    case.write("large", b"x" * 2000000)
    words = ("-", "memchr", "pointer (bytes, i32, u64)", "@large", "121", "2000000")
    done = _call(case, *words, code=2)
    assert "argument 1: large has more than 1048576 bytes" in done.err, done
    assert "--input" in done.err, done
    assert _call(case, "--input", "3M", *words).out == "null\n"
    done = _call(case, "--input", "1M", *words[:3], "@" + case.write("fits", b"x" * (1 << 20)),
                 "121", "1", code=2)
    assert "larger than in_bytes" in done.err, done  # with what stands around it


def a_file_without_an_end_is_read_up_to_the_limit(case):
    words = ("-", "memchr", "pointer (bytes, i32, u64)", "@/dev/zero", "1", "1")
    done = _call(case, *words, code=2)
    assert "/dev/zero has more than 1048576 bytes" in done.err, done
    done = _call(case, "--input", "5000", *words, code=2)
    assert "/dev/zero has more than 5000 bytes" in done.err, done
    with open(case.path("hole"), "wb") as file:
        file.truncate((256 << 20) + 1)
    done = _call(case, "--isolation", "thread", *words[:3], "@hole", "1", "1", code=2)
    assert "hole has more than 268435456 bytes; a program" in done.err, done


def a_file_that_cannot_be_read_is_named(case):
    for name, why in (("gone", "No such file"), (".", "Is a directory")):
        done = _call(case, "-", "memchr", "pointer (bytes, i32, u64)", "@" + name, "1", "1", code=2)
        assert "argument 1: %s cannot be read: %s" % (name, why) in done.err, done


def a_result_beyond_the_limit_is_told_as_output(case):
    words = ("-", "memset", "pointer (out bytes, i32, u64)", "9000", "7", "9000")
    done = _call(case, "--output", "8K", *words, code=1)
    assert "call: OUTPUT: its result is larger than out_bytes of the policy, 8192" in done.err, done
    assert "--output" in done.err and done.out == "", done
    assert "argument 1:" in _call(case, "--output", "16K", *words).out


def null_is_a_null_pointer_and_can_be_said_as_a_text(case):
    for tier in ("process", "thread"):
        def out(*words, tier=tier):
            return _call(case, "--isolation", tier, "-", *words).out
        assert out("setlocale", "string (i32, string)", "0", "null") == '"C"\n'
        assert out("strlen", "u64 (string)", "t:null") == "4\n"
        assert out("strlen", "u64 (string)", "t:t:x") == "3\n"
        assert out("strlen", "u64 (string)", "t:") == "0\n"
        assert out("strlen", "u64 (string)", "nulls") == "5\n"
        assert out("strnlen", "u64 (bytes, u64)", "null", "0") == "0\n"
        assert out("strnlen", "u64 (bytes, u64)", "t:null", "4") == "4\n"
        assert out("strnlen", "u64 (bytes, u64)", "t:@none", "5") == "5\n"
        assert out("strnlen", "u64 (bytes, u64)", "t:x:zz", "4") == "4\n"
        assert out("memset", "pointer (inout bytes, i32, u64)", "null", "1", "0") == \
            "null\nargument 1: null\n"
    done = _call(case, "-", "labs", "i64 (i64)", "null", code=2)
    assert "a whole number" in done.err, done


def errno_is_printed_where_it_was_set(case):
    done = _call(case, "-", "access", "i32 (string, i32)", "/nonexistent", "0")
    assert done.out.startswith("-1\nerrno: "), done


def the_environment_of_a_worker_is_empty(case):
    words = ("-", "getenv", "string (string)", "PATH")
    assert _call(case, *words).out == "null\n"
    assert _call(case, "--isolation", "thread", *words).out != "null\n"
    assert "getenv gives null" in _call(case, "--help").out


def what_roots_workers_may_not_write_is_told_beforehand(case):
    """They are another user's: what landlock lets them do, that user may be refused."""
    os.chmod(case.folder, 0o755)
    os.mkdir(case.path("mine"), 0o755)
    words = ("--promise", "wpath", "--path", "mine=w", "-", "open",
             "i32 (string, i32, ..., i32)", case.path("mine", "made"), "65", "420")
    done = _call(case, *words)
    if os.geteuid() == 0:
        assert done.out.startswith("-1\nerrno: 13 "), done
        os.chmod(case.path("mine"), 0o777)
        done = _call(case, *words)
    assert not done.out.startswith("-1"), done
    assert "with wpath writable" in " ".join(_call(case, "--help").out.split())
    facts = json.loads(case.run("doctor", "--json").out)["facts"]
    advice = next(fact["advice"] for fact in facts if fact["name"] == "user")
    assert os.geteuid() != 0 or "what they write (wpath) writable" in advice, advice


def an_int_that_is_used_as_truth_is_no_bool(case):
    """docs/ffi.md says so."""
    assert _call(case, "-", "isalpha", "int (int)", "65").out == "1024\n"


def structures_are_read_and_printed(case):
    done = _call(case, "-", "div", "{i32, i32} (i32, i32)", "17", "5")
    assert done.out == "{3, 2}\n", done


def each_way_to_end_badly_has_its_code(case):
    for words, name in ((("abort", "void ()"), "CRASHED"),
                        (("fork", "i32 ()"), None),
                        (("getppid", "i32 ()"), "POLICY"),
                        (("exit", "void (i32)", "7"), "EXITED")):
        done = case.run("call", "-", *words)
        if name is None:
            assert done.code == 0 and done.out.startswith("-1\n"), done
        else:
            assert done.code == 1 and "call: %s: " % name in done.err, done
            assert done.out == "", done
    assert "status 7" in done.err, done
    done = _call(case, "--deadline", "0.2", "-", "sleep", "u32 (u32)", "30", code=5)
    assert "DEADLINE: its deadline of 200 ms passed, counted from its submit" in done.err, done


def a_denied_call_is_named_when_asked(case):
    done = _call(case, "--report-denied", "-", "getppid", "i32 ()", code=1)
    assert "system call: getppid" in done.err, done
    done = _call(case, "-", "getppid", "i32 ()", code=1)
    assert "--report-denied" in done.err, done


def what_gets_an_error_is_named_too(case):
    """system blocks all signals around clone."""
    for words, names in ((("open", "i32 (string, i32)", "/etc/passwd", "0"), ("openat (",)),
                         (("system", "i32 (string)", "true"), ("clone3 (", "clone ("))):
        done = _call(case, "--report-denied", "-", *words)
        for name in names:
            assert "  refused: " + name in done.err, done
        plain = _call(case, "-", *words)
        assert plain.out == done.out and plain.err == "", (plain, done)


BAD = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void at_once(void) { %s; }
int f(void) { return 1; }
"""


def what_ended_the_opening_of_a_library_is_named(case):
    if shutil.which("cc") is None:
        raise program_case.Skip("no compiler")
    os.chmod(case.folder, 0o755)
    for body, words, said in (("getppid()", ("--report-denied",), "made the forbidden system call getppid (110)"),
                              ("getppid()", (), "made a forbidden system call"),
                              ("abort()", (), "was ended by signal 6"),
                              ("exit(3)", (), "exited with status 3")):
        case.write("bad.c", BAD % body)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", case.path("bad.so"), case.path("bad.c")],
                       check=True)
        done = _call(case, *words, "./bad.so", "f", "i32 ()", code=1)
        assert "workers that opened it ended, or hung; the last one " + said in done.err, done
    case.write("bad.c", BAD % 'open("/etc/passwd", O_RDONLY)')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", case.path("bad.so"), case.path("bad.c")],
                   check=True)
    done = _call(case, "--report-denied", "./bad.so", "f", "i32 ()")
    assert done.out == "1\n", done


def what_is_missing_is_named(case):
    done = _call(case, "libnope.so.9", "f", "void ()", code=1)
    assert "libnope.so.9" in done.err, done
    for tier in ("process", "thread"):
        done = _call(case, "--isolation", tier, "-", "no_such_function", "void ()", code=1)
        assert "no_such_function" in done.err, done
        assert "errand: call: NO_SYMBOL: " in done.err, done


def a_wrong_line_is_refused_with_the_mend(case):
    for words, said in ((("-",), "LIB SYMBOL SIGNATURE"),
                        (("-", "labs", "i64 (i65)", "1"), "i65"),
                        (("-", "labs", "i64 (i64)"), "takes 1 arguments"),
                        (("-", "labs", "i64 (i64)", "x"), "a whole number"),
                        (("-", "abs", "i32 (i32)", "99999999999"), "99999999999"),
                        (("--isolation", "box", "-", "labs", "i64 (i64)", "1"), "thread or process"),
                        (("--isolation", "thread", "--memory", "1M", "-", "f", "void ()"),
                         "--isolation process"),
                        (("--promise", "rpath,all", "-", "f", "void ()"),
                         "--promise: 'all' is no promise; there are pure, rpath"),
                        (("-", "labs", "i64", "1"), "'(' and the parameters"),
                        (("-", "labs", "i64 labs(i64)", "1"), "leave it out"),
                        (("--memory", "1099511627776G", "-", "f", "void ()"), "at most 1024G"),
                        (("--memory", "many", "-", "f", "void ()"), "number of bytes"),
                        (("--memory", "64", "-", "f", "void ()"), "at least 32M"),
                        (("--output", "2G", "-", "f", "void ()"), "--output: at most 1G"),
                        (("--path", "/etc", "-", "f", "void ()"), "--path /etc means /etc=r, which needs --promise rpath\n"),
                        (("--promise", "wpath", "--path", "/etc", "-", "f", "void ()"),
                         "needs --promise rpath; for writing alone give --path /etc=w\n"),
                        (("--promise", "wpath", "--path", ".=rw", "-", "f", "void ()"),
                         "--path .=rw: its r needs --promise rpath; or give =w alone\n"),
                        (("--promise", "rpath", "--path", ".=rw", "-", "f", "void ()"),
                         "--path .=rw: its w needs --promise wpath; or give =r alone\n"),
                        (("--path", ".=w", "-", "f", "void ()"),
                         "--path .=w: its w needs --promise wpath\n"),
                        (("-", "free", "void (pointer)", "1"),
                         "argument 1, '1': give null: the command line knows no other address"),
                        (("-", "strnlen", "u64 (bytes, u64)", "x:68656c6c6", "5"),
                         "argument 1, 'x:68656c6c6': give pairs of hexadecimal digits behind x:"),
                        (("--promise", "wpath", "-", "f", "void ()"), "needs --path PATH=w"),
                        (("--path", "gone", "-", "f", "void ()"), "--path gone: No such file"),
                        (("--port", "80", "-", "f", "void ()"), "--port needs --promise inet"),
                        (("--promise", "inet", "-", "f", "void ()"), "needs --port N"),
                        (("-", "labs", "i64 (i64)", "1", "--deadline", "1"),
                         "options come before LIB")):
        done = _call(case, *words, code=2)
        assert said in done.err and done.out == "", (words, done)


def the_column_of_a_bad_signature_is_shown(case):
    done = _call(case, "-", "labs", "i64 (i65)", "1", code=2)
    lines = done.err.splitlines()
    assert lines[1].strip() == "i64 (i65)", done
    assert lines[2].index("^") == lines[1].index("i65"), done


def the_doctor_lists_what_there_is(case):
    done = case.run("doctor")
    assert done.code == 0, done
    for name in ("seccomp", "landlock", "user-namespaces", "io_uring"):
        assert name in done.out, done
    facts = json.loads(case.run("doctor", "--json").out)["facts"]
    assert len({fact["name"] for fact in facts}) == len(facts) > 10
    assert all(isinstance(fact["available"], bool) for fact in facts)
    assert case.run("doctor", "--frob").code == 2


def a_full_disk_is_named_by_a_foreign_call_too(case):
    if not os.path.exists("/dev/full"):
        raise program_case.Skip("there is no /dev/full")
    with open("/dev/full", "w") as full:
        done = case.run("call", "--isolation", "thread", "-", "labs", "i64 (i64)", "-7", stdout=full)
    assert done.code == 7 and "No space left" in done.err and "free some space" in done.err, done


if __name__ == "__main__":
    program_case.main(globals())
