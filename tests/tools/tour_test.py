# SPDX-License-Identifier: MIT
"""The tour: what it finds, that the same seed repeats it, that many work at once."""
import os
import re
import shutil
import subprocess
import program_case
from program_case import Skip, digest_of

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "examples", "tour.lua")


def _tree(case):
    """A small tree with everything that must and must not be hashed.  Answers its sources."""
    sources = ["README.md", "run", ".hidden", "src/a.c", "src/b.c", "src/deep/er/c.h",
               "build.sh"] + ["many/%02d.txt" % i for i in range(40)]
    for name in sources:
        case.write("tree/" + name, "this is %s\n" % name)
    for name in (".git/config", "build/x.c", "build-arm/x.c", "cmake-build-debug/x.c",
                 "src/CMakeFiles/x.c", "src/a.o", "lib.so", "__pycache__/x.pyc"):
        case.write("tree/" + name, "not a source\n")
    os.symlink("a.c", case.path("tree/src/link.c"))
    return sorted(sources)


def _script(case, *words, tree="tree"):
    """The same script with a line for each completion, of which the tour has a few of each kind."""
    return case.run("run", SCRIPT, *words, cwd=case.path(tree))


def _hashed(out):
    return re.findall(r" completed  hash_file (\S+): [0-9a-f]{16}", out)


def _found(out, stop):
    return re.search(r"^%s: +(.*)$" % stop, out, re.M).group(1)


def _check(done, sources):
    assert done.code == 0, done
    assert sorted(_hashed(done.out)) == sources, done
    assert _found(done.out, "tree").startswith("%d files in 5 folders" % len(sources)), done
    assert _found(done.out, "echo") == 'status 0, "a child process says hello"', done
    assert _found(done.out, "cat").startswith("status 0, 31000 bytes"), done
    assert "the tour goes on" in _found(done.out, "cancel"), done
    assert "no result within" in _found(done.out, "timeout"), done
    assert "a job went wrong on purpose" in _found(done.out, "panic"), done
    assert _found(done.out, "primes") == "78498 below 1000000", done
    out, back = re.search(r"^accounts: +(\d+) went out, (\d+) came back", done.out,
                          re.M).groups()
    lines = re.findall(r"^ *\d+\.\d{6}  \w+ ", done.out, re.M)
    assert out == back and int(out) == len(lines), done
    assert "summary: %s completions" % out in done.out, done


def the_tour_hashes_every_source_and_nothing_that_was_built(case):
    sources = _tree(case)
    for order in ("arrival", "inline"):
        _check(_script(case, "--order", order, "--seed", "1"), sources)


def the_same_seed_gives_the_same_bytes_and_another_does_not(case):
    sources = _tree(case)
    shutil.copytree(case.path("tree"), case.path("elsewhere"), symlinks=True)
    first = _script(case, "--seed", "7")
    again = _script(case, "--seed", "7", "--workers", "1", tree="elsewhere")
    other = _script(case, "--seed", "8")
    _check(first, sources)
    assert first.out == again.out and first.err == again.err == "", (first, again)
    assert digest_of(first.out) != digest_of(other.out)
    assert _hashed(first.out) != _hashed(other.out)
    assert _found(first.out, "tree") == _found(other.out, "tree")


def the_tour_shows_a_few_of_each_kind_before_what_it_found(case):
    sources = _tree(case)
    for order in ("inline", "arrival"):
        built_in = case.run("tour", "--tree", "tree", "--seed", "7", "--order", order)
        script = _script(case, "--seed", "7", "--order", order)
        assert built_in.code == 0 and len(built_in.out.splitlines()) <= 60, built_in
        shown, more, rest = re.match(r"((?: *\d+\.\d{6}  .*\n)+) +\.\.\. (\d+) more completions\n"
                                     r"(tree: (?:.*\n)+)$", built_in.out).groups()
        shown = shown.splitlines()
        kinds = [re.search(r"  (\w+ +\w+)", line).group(1) for line in shown]
        assert all(kinds.count(kind) <= 4 for kind in kinds), built_in
        assert kinds.count("completed  hash_file") == 4 and len(sources) > 4, built_in
        assert _found(built_in.out, "accounts").startswith(
            "%d went out" % (len(shown) + int(more))), built_in
        if order == "inline":
            lines = iter(script.out.splitlines(True))
            assert all(line + "\n" in lines for line in shown), (built_in, script)
            assert script.out.endswith("\n" + rest), (built_in, script)


def a_changed_byte_changes_the_digest_in_both_orders(case):
    _tree(case)
    for order in ("arrival", "inline"):
        before = case.run("tour", "--tree", "tree", "--seed", "7", "--order", order)
        case.write("tree/run", "this is ruN\n")
        after = case.run("tour", "--tree", "tree", "--seed", "7", "--order", order)
        case.write("tree/run", "this is run\n")
        assert digest_of(before.out) != digest_of(after.out), (before, after)


def the_digest_of_arrival_order_is_that_of_the_contents(case):
    _tree(case)
    digests = {digest_of(case.run("tour", "--tree", "tree", "--workers", workers).out)
               for workers in ("1", "2", "4", "4")}
    assert len(digests) == 1, digests


def nothing_of_this_machine_is_printed_in_seeded_orders(case):
    _tree(case)
    done = _script(case, "--seed", "3", "--stats", tree=case.path("tree"))
    assert case.folder not in done.out + done.err, done
    pids = [line for line in done.out.splitlines() if re.search(r"\bpid\b|process \d", line)]
    assert not pids, pids


def workers_work_at_once_and_no_shell_is_started(case):
    strace = shutil.which("strace")
    if strace is None or os.environ.get("ERRAND_TEST_CONFIG", "") in ("asan", "tsan",
                                                                      "gcc-tsan"):
        raise Skip("needs strace, and a build that strace does not slow down much")
    for i in range(16):
        case.write("tree/large%02d.bin" % i, bytes(4 << 20))
    log = case.path("log")
    done = subprocess.run([strace, "-f", "-qq", "-o", log, "-e", "trace=execve,openat,read,close",
                           case.program, "tour", "--workers", "4"], cwd=case.path("tree"),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=program_case.LIMIT)
    assert done.returncode == 0, done.stdout
    with open(log) as file:
        lines = file.read().splitlines()
    programs = [re.search(r'execve\("([^"]*)"', line) for line in lines]
    names = {os.path.basename(match.group(1)) for match in programs if match}
    # Where the machine is busy, sleep may be cancelled before a worker came to it.
    assert names | {"sleep"} == {"errand", "echo", "cat", "sleep"}, names
    readers, most = {}, 0
    for line in lines:
        thread, call = line.split(None, 1)
        if re.match(r'openat\(.*large\d\d\.bin"', call):
            readers[thread] = True
            most = max(most, len(readers))
        elif call.startswith("close("):
            readers.pop(thread, None)
    assert most >= 2, "only %d files were open at once" % most


def the_tour_of_an_empty_folder_is_short_and_good(case):
    os.mkdir(case.path("empty"))
    done = case.run("tour", "--tree", "empty", "--seed", "1")
    assert done.code == 0 and "0 files in 1 folder," in done.out, done


if __name__ == "__main__":
    program_case.main(globals())
