# SPDX-License-Identifier: MIT
"""What the tests of servers and clients in Lua share: examples that run, and who talks to them."""
import os
import re
import shutil
import signal
import socket
import time
import program_case

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def need(name):
    if shutil.which(name) is None:
        raise program_case.Skip("%s is not installed" % name)
    return name


def serve(case, example, *words, options=(), **settings):
    """An example that listens: the process, and its address."""
    path = os.path.join(ROOT, "examples", example)
    process = case.start("run", "-q", path, *options, "--", *words, **settings)
    line = process.stdout.readline()
    found = re.search(r"(127\.0\.0\.1:(\d+))", line)
    assert found, line + process.stderr.read()
    return process, int(found.group(2))


def stop(case, process, number=signal.SIGTERM):
    process.send_signal(number)
    done = case.end(process)
    assert done.code == 0 and done.err == "", done
    assert done.out.endswith("ended by %s\n" % signal.Signals(number).name), done
    return done


def threads_of(process):
    return len(os.listdir("/proc/%d/task" % process.pid))


def descriptors_of(process):
    return len(os.listdir("/proc/%d/fd" % process.pid))


def wait_until(condition, what):
    limit = time.monotonic() + program_case.LIMIT
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.005)


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=program_case.LIMIT)


def read_all(stream):
    pieces = []
    while True:
        piece = stream.recv(1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def read_exactly(stream, size):
    got = b""
    while len(got) < size:
        piece = stream.recv(size - len(got))
        assert piece, "%d of %d bytes came" % (len(got), size)
        got += piece
    return got
