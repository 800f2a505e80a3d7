# SPDX-License-Identifier: MIT
"""The examples run and say what they promise.   examples_test.py PROGRAM FOLDER_OF_HOSTS"""
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import program_case


def _host(case, name, *words):
    case.program = os.path.join(os.path.abspath(sys.argv[2]), name)
    done = case.run(*words)
    assert done.code == 0 and done.err == "", done
    return done.out


def _script(case, name, *words):
    path = os.path.join(ROOT, "examples", name)
    for order in (["--order", "arrival"], ["--seed", "1"]):
        done = case.run("run", "-q", path, *words, *order)
        assert done.code == 0 and done.err == "", done
    return done.out


def the_smallest_host_hears_its_one_completion(case):
    assert _host(case, "smallest_host") == "add_up: 500000500000\n"


def the_smallest_host_has_less_than_80_lines(case):
    with open(os.path.join(ROOT, "examples", "smallest_host.c")) as file:
        assert len(file.readlines()) < 80


def the_epoll_host_hears_everything_while_its_loop_runs(case):
    out = _host(case, "epoll_host")
    assert out.count("wait_a_little ended") == 8, out
    assert out.endswith("8 completions, and the loop's own timer ticked meanwhile\n"), out


def the_own_executor_runs_the_newest_first_and_survives_a_panic(case):
    out = _host(case, "own_executor")
    assert re.findall(r"job (\d) runs", out) == ["4", "3", "2", "1"], out
    assert out.count("completion: completed\n") == 3, out
    assert "completion: panicked: " in out and "only job 2" in out, out


def a_deadline_and_a_cancel_end_what_would_not_end(case):
    first, second = _host(case, "deadline").splitlines()
    # The second where the worker came to it late.
    assert first in ("search: DEADLINE: asked to end, and nothing was found",
                     "search: DEADLINE: its deadline passed"), first
    assert second.startswith("search: cancelled: "), second


def foreign_functions_are_called_and_call_back(case):
    assert _host(case, "foreign") == "snprintf: 9, '7 is 7.00'\nqsort: 900 5 -1\n"


def whatever_contained_code_does_is_told_and_the_host_goes_on(case):
    ends = [("labs", "7"), ("strlen", "CRASHED"), ("exit", "EXITED"), ("getpgid", "POLICY"),
            ("sleep", "DEADLINE"), ("labs", "8")]
    with tempfile.TemporaryDirectory() as folder: # the worker of root may not search root's folders
        os.chmod(folder, 0o755)
        plugin = shutil.copy(os.path.join(sys.argv[2], "plugin.so"), folder)
        for words, more in ((), []), ((plugin,), [("reverse", "'desserts'"), ("overrun", "CRASHED")]):
            lines = _host(case, "contained", *words).splitlines()
            assert [tuple(line.split(": ")[:2]) for line in lines] == ends + more, lines


def the_echo_server_echoes_and_a_signal_ends_it(case):
    case.program = os.path.join(os.path.abspath(sys.argv[2]), "echo_server")
    process = case.start("0")
    port = int(re.fullmatch(r"listening on 127.0.0.1:(\d+)\n", process.stdout.readline()).group(1))
    idle, small, large = [socket.create_connection(("127.0.0.1", port), program_case.LIMIT) for _ in range(3)]
    small.sendall(b"hello")
    assert small.makefile("rb").read(5) == b"hello"
    small.shutdown(socket.SHUT_WR)
    assert small.recv(1) == b""
    sent = os.urandom(1 << 18)
    writer = threading.Thread(target=large.sendall, args=(sent,))
    writer.start()
    assert large.makefile("rb").read(len(sent)) == sent
    writer.join()
    process.send_signal(signal.SIGINT)
    assert idle.recv(1) == b"" and large.recv(1) == b""
    done = case.end(process)
    assert done.code == 0 and done.err == "" and done.out == "3 clients\n", done
    for one in idle, small, large:
        one.close()


def a_server_that_cannot_listen_says_why(case):
    case.program = os.path.join(os.path.abspath(sys.argv[2]), "echo_server")
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = case.run(str(other.getsockname()[1]))
    assert done.code == 1 and "in use" in done.err, done


def the_hosts_are_small(case):
    for name, most in ("echo_server", 220), ("foreign", 110), ("contained", 110), ("plugin", 80):
        with open(os.path.join(ROOT, "examples", name + ".c")) as file:
            assert len(file.readlines()) < most, name


def timeouts_end_what_takes_too_long(case):
    assert _script(case, "timeouts.lua") == ("in time:   status 0\ntoo late:  false, timeout\n"
                                             "nested:    false, timeout\n")


def gather_and_race_wait_for_everybody(case):
    lines = [line.split() for line in _script(case, "gather_and_race.lua").splitlines()]
    assert lines[0][-3:] == ["one", "two", "three"], lines
    assert lines[1][-5:] == ["this", "one", "fails", "cancelled"][-5:] or \
        lines[1][-1] == "cancelled" and "fails" in lines[1], lines
    assert lines[2][-2:] == ["quick", "cancelled"], lines


def a_cancelled_task_cleans_up_in_a_shield(case):
    out = _script(case, "shield_and_cleanup.lua")
    assert out.count("cancelled") >= 3 and "begun;" in out, out
    assert "the helper cleaned up;" in out and "the worker cleaned up;" in out, out
    assert "the shop closes" in out, out


def checksums_names_what_it_cannot_hash(case):
    case.write("a", "text")
    case.write("b", "text")
    lines = _script(case, "checksums.lua", "a", "b").splitlines()
    assert len(lines) == 2 and lines[0].split()[:2] == lines[1].split()[:2], lines
    path = os.path.join(ROOT, "examples", "checksums.lua")
    done = case.run("run", "-q", path, "a", "gone")
    assert done.code == 1 and "gone" in done.err and "1 of 2" in done.err, done


def _stands_in(block, path):
    """Is each part of the block, between lines of three dots, there line by line?"""
    with open(path) as file:
        whole = "\n".join(line.strip() for line in file)
    parts = re.split(r"^ *\.\.\.$", block, flags=re.M)
    return all("\n".join(line.strip() for line in part.strip().splitlines()) in whole for part in parts)


def what_the_howto_shows_stands_in_examples_or_runs(case):
    """C is quoted from the example that is linked last before it; what a script prints stands behind it."""
    with open(os.path.join(ROOT, "docs", "howto.md")) as file:
        text = file.read()
    counts = {"c": 0, "lua": 0}
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        kind, block = match.groups()
        counts[kind] += 1
        if kind == "c":
            linked = re.findall(r"\(\.\./examples/(\w+\.c)\)", text[:match.start()])[-1]
            assert _stands_in(block, os.path.join(ROOT, "examples", linked)), (linked, block)
        else:
            done = case.lua(block, "-q")
            if "libz.so.1" in done.err:
                raise program_case.Skip("libz.so.1 is not installed")
            wanted = re.findall(r"--> (.*)", block)
            assert done.code == 0 and done.out.splitlines() == wanted, (block, done)
    assert counts == {"c": 6, "lua": 4}, counts


if __name__ == "__main__":
    program_case.main(globals())
