# SPDX-License-Identifier: MIT
"""Servers in Lua against clients that are not ours: nc, curl, wrk, sockets of Python; and clients
that do not behave.   net_test.py PROGRAM"""
import hashlib
import os
import resource
import signal
import socket
import struct
import subprocess
import threading
import program_case
from net_case import (ROOT, connect, descriptors_of, need, read_all, read_exactly, serve, stop,
                      threads_of, wait_until)

REACTORS = ("io_uring", "epoll")


def _reactors(case):
    """io_uring only where the kernel has it: there the program says so at once."""
    done = case.lua("require 'errand'.listen('127.0.0.1:0'):close()")
    assert done.code == 0, done
    probe = case.run("run", "-q", "script.lua", "--reactor", "io_uring")
    return REACTORS if probe.code == 0 else REACTORS[1:]


def _bytes(size, seed=7):
    return hashlib.shake_128(b"%d" % seed).digest(size)


def netcat_hears_what_it_said(case):
    need("nc")
    for reactor in _reactors(case):
        server, port = serve(case, "echo_server.lua", "--port", "0",
                             options=("--reactor", reactor))
        said = _bytes(3 << 20)
        heard = subprocess.run(["nc", "-N", "127.0.0.1", str(port)], input=said,
                               stdout=subprocess.PIPE, timeout=program_case.LIMIT).stdout
        assert heard == said, (len(heard), len(said))
        stop(case, server)


def _raise_limit(count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise program_case.Skip("only %d descriptors are allowed" % hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def thousands_of_connections_echo_without_a_thread_for_each(case):
    count = 1000 if program_case.SCALE == 1 else 10000
    _raise_limit(count)
    for reactor in _reactors(case):
        server, port = serve(case, "echo_server.lua", "--port", "0",
                             options=("--reactor", reactor))
        idle = threads_of(server)
        clients = [connect(port) for _ in range(count)]
        for turn in range(3):
            for i, client in enumerate(clients):
                client.sendall(struct.pack("<II", i, turn))
            for i, client in enumerate(clients):
                assert read_exactly(client, 8) == struct.pack("<II", i, turn)
        assert descriptors_of(server) > count
        assert threads_of(server) <= idle + 8, (idle, threads_of(server))
        for client in clients:
            client.shutdown(socket.SHUT_WR)
        for client in clients:
            assert read_all(client) == b""
            client.close()
        wait_until(lambda: descriptors_of(server) < 64, "connections are left")
        stop(case, server, signal.SIGINT)


def a_peer_that_resets_or_never_reads_harms_nobody_else(case):
    for reactor in _reactors(case):
        server, port = serve(case, "echo_server.lua", "--port", "0", "--idle", "1",
                             options=("--reactor", reactor))
        other = connect(port)
        for _ in range(20):
            rude = connect(port)
            rude.sendall(b"x" * 1000)
            rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            rude.close()
            other.sendall(b"still here")
            assert read_exactly(other, 10) == b"still here"
        deaf = connect(port)
        deaf.settimeout(0.2)
        try:
            while True:
                deaf.sendall(b"y" * 65536)
        except OSError:
            pass  # it takes nothing more, or has let go of us
        for _ in range(5):
            other.sendall(b"still here")
            assert read_exactly(other, 10) == b"still here"
        with open("/proc/%d/status" % server.pid) as file:
            size = [int(line.split()[1]) for line in file if line.startswith("VmRSS")]
        assert program_case.SANITIZED or size[0] < 100000, size
        # Both have been silent, or deaf, for longer than --idle.
        wait_until(lambda: descriptors_of(server) < 20, "somebody is still there")
        stop(case, server)


# ---- files ---------------------------------------------------------------------------------

def _folder(case):
    case.write("root/a.txt", "content\n")
    case.write("root/empty", "")
    case.write("root/sub/with space & ü.html", "<p>")
    case.write("root/index/index.html", "the index")
    case.write("root/large.bin", _bytes(5 << 20))
    case.write("secret", "secret")
    os.symlink("../secret", case.path("root/link"))
    os.symlink("..", case.path("root/up"))
    os.mkfifo(case.path("root/fifo"))
    return case.path("root")


def _curl(*words):
    need("curl")
    return subprocess.run(["curl", "-sS", "--path-as-is", "--max-time", "30", *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=program_case.LIMIT)


def curl_gets_every_byte_of_a_file_and_nothing_outside(case):
    root = _folder(case)
    for reactor in _reactors(case):
        server, port = serve(case, "file_server.lua", "--root", root, "--port", "0",
                             options=("--reactor", reactor))
        base = "http://127.0.0.1:%d" % port
        assert _curl(base + "/large.bin").stdout == _bytes(5 << 20)
        # One connection for three requests.
        done = _curl("-v", base + "/a.txt", base + "/empty", base + "/index/")
        assert done.stdout == b"content\nthe index", done.stdout
        assert done.stderr.count(b"Re-using existing connection") == 2, done.stderr
        assert _curl(base + "/sub/with%20space%20%26%20%C3%BC.html").stdout == b"<p>"
        listing = _curl(base + "/sub/").stdout
        assert b"with%20space%20%26%20%C3%BC.html" in listing and b"&amp;" in listing, listing
        head = _curl("-I", base + "/large.bin").stdout
        assert b"200 OK" in head and b"Content-Length: %d" % (5 << 20) in head, head
        for path, code in {"/nope": 404, "/link": 404, "/up/secret": 404, "/fifo": 404,
                           "/../secret": 400, "/%2e%2e/secret": 400, "/a%00b": 400, "/%zz": 400,
                           "/a.txt/": 404, "/a.txt/b": 404, "/index": 301}.items():
            told = _curl("-o", "/dev/null", "-w", "%{http_code}", base + path).stdout
            assert told == b"%d" % code, (path, told)
        told = _curl("-X", "DELETE", "-D", "-", base + "/a.txt").stdout
        assert b" 405 " in told and b"Allow: GET, HEAD" in told, told
        assert _curl("-L", base + "/index").stdout == b"the index"
        stop(case, server)


def requests_may_come_in_any_pieces(case):
    server, port = serve(case, "file_server.lua", "--root", _folder(case), "--port", "0")
    client = connect(port)
    for byte in b"GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n":
        client.sendall(bytes([byte]))
    client.sendall(b"HEAD /a.txt HTTP/1.1\nHost: x\n\nGET /a.txt HTTP/1.0\r\n\r\n")
    told = read_all(client)
    assert told.count(b"HTTP/1.1 200 OK") == 3 and told.count(b"content\n") == 2, told
    for wrong, code in {b"hello\r\n\r\n": 400, b"GET /a HTTP/1.1\r\nbad\r\n\r\n": 400,
                        b"GET / HTTP/3.0\r\n\r\n": 505, b"get / HTTP/1.1\r\n\r\n": 400,
                        b"GET /a.txt HTTP/1.1\r\n\r\n": 400,
                        b"GET /a.txt HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n": 400}.items():
        client = connect(port)
        client.sendall(wrong)
        told = read_all(client)
        assert told.startswith(b"HTTP/1.1 %d " % code), (wrong, told)
    stop(case, server)


def a_request_that_ends_in_two_places_is_refused(case):
    server, port = serve(case, "file_server.lua", "--root", _folder(case), "--port", "0")
    for fields in ("Content-Length: 0\r\nContent-Length: 4", "content-length: 4\r\nContent-Length: 0",
                   "Content-Length: 0\r\nTransfer-Encoding: chunked", "Content-Length: 0, 4",
                   "Transfer-Encoding: chunked\r\nContent-Length: 0", "Content-Length: -1",
                   "Content-Length: 0\r\nContent-Length : 4", "Content-Length: +0"):
        client = connect(port)
        # What follows may be its body, or one more request: nobody is to answer that.
        client.sendall(b"GET /a.txt HTTP/1.1\r\nHost: x\r\n%s\r\n\r\nGET /a.txt HTTP/1.0\r\n\r\n"
                       % fields.encode())
        client.shutdown(socket.SHUT_WR)
        told = read_all(client)
        assert told.startswith(b"HTTP/1.1 400 ") and told.count(b"HTTP/1.1 ") == 1, (fields, told)
        assert b"Connection: close" in told, (fields, told)
    client = connect(port)
    client.sendall(b"GET /a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n"
                   b"GET /a.txt HTTP/1.0\r\n\r\n")
    told = read_all(client)
    assert told.count(b"HTTP/1.1 200 OK") == 2, told
    stop(case, server)


def a_head_that_is_too_long_is_answered_and_the_answer_arrives(case):
    server, port = serve(case, "file_server.lua", "--root", _folder(case), "--port", "0")
    long = b"x" * 100000
    for wrong, code in {b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % long: 414,
                        b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % long: 431,
                        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n": 431}.items():
        client = connect(port)
        client.sendall(wrong)
        told = read_all(client)
        assert told.startswith(b"HTTP/1.1 %d " % code) and b"Connection: close" in told, told
        client.close()
    stop(case, server)


def slow_clients_are_let_go_and_hold_nobody_up(case):
    server, port = serve(case, "file_server.lua", "--root", _folder(case), "--port", "0",
                         "--patience", "1")
    slow = [connect(port) for _ in range(50)]
    ended = threading.Event()

    def drip():
        while not ended.wait(0.05):
            for client in slow:
                try:
                    client.sendall(b"A")
                except OSError:
                    pass

    for client in slow:
        client.sendall(b"GET /a.txt HTTP/1.1\r\nX: ")
    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        base = "http://127.0.0.1:%d" % port
        for _ in range(5):
            assert _curl(base + "/a.txt").stdout == b"content\n"
        wait_until(lambda: descriptors_of(server) < 30, "slow ones are still there")
    finally:
        ended.set()
        dripping.join()
    endless = connect(port)  # a head without an end
    try:
        while True:
            endless.sendall(b"X: " + b"y" * 1000 + b"\r\n")
    except OSError:
        pass
    stop(case, server)


SERVERS = {"echo_server.lua": ("--port", "0"), "file_server.lua": ("--port", "0", "--root", "."),
           "port_forward.lua": ("--listen", "127.0.0.1:0", "--to", "127.0.0.1:1")}


def _run(case, name, *words, options=()):
    return case.run("run", "-q", os.path.join(ROOT, "examples", name), *options, "--", *words)


def servers_refuse_a_seeded_order_and_say_their_options(case):
    for name, words in SERVERS.items():
        for options in (("--seed", "7"), ("--order", "inline"), ("--order", "paced")):
            done = _run(case, name, *words, options=options)
            assert done.code == 2 and done.out == "", done
            assert "order arrival" in done.err and done.err.count("\n") == 1, done
        done = _run(case, name, "--help")
        assert done.code == 0 and done.out.startswith("usage: %s --" % name), done
        assert done.err == "", done


def options_without_a_meaning_are_refused(case):
    for name, option, values in (
            ("echo_server.lua", "--idle", ("abc", "0", "-1", "1e999", "")),
            ("file_server.lua", "--patience", ("abc", "0", "-1", "1e999")),
            ("echo_server.lua", "--port", ("abc", "65536", "-1", "0x10")),
            ("file_server.lua", "--port", ("abc", "65536")),
            ("port_forward.lua", "--listen", ("127.0.0.1:65536", "[::1]:70000")),
            ("port_forward.lua", "--to", ("127.0.0.1:65536",)),
            ("echo_server.lua", "--idel", ("3",)), ("port_forward.lua", "--form", ("a:1",))):
        for value in values:
            done = _run(case, name, *SERVERS[name], option, value)
            assert done.code == 2 and done.out == "" and done.err.count("\n") == 1, (value, done)
            assert option in done.err or done.err.startswith("usage: "), (value, done)


def wrk_finds_no_error(case):
    need("wrk")
    server, port = serve(case, "file_server.lua", "--root", _folder(case), "--port", "0")
    told = subprocess.run(["wrk", "-t1", "-c64", "-d%ds" % (2 if program_case.SCALE == 1 else 10),
                           "http://127.0.0.1:%d/a.txt" % port], stdout=subprocess.PIPE,
                          text=True, timeout=program_case.LIMIT).stdout
    assert "requests in" in told and "Socket errors" not in told, told
    assert "Non-2xx" not in told, told
    assert threads_of(server) < 16
    stop(case, server)


if __name__ == "__main__":
    program_case.main(globals())
