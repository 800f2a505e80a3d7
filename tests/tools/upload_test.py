# SPDX-License-Identifier: MIT
"""Uploads in Lua against a server that is not ours: bodies in pieces, of known and of unknown size,
servers that stop, answer early or go away.   upload_test.py PROGRAM"""
import hashlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import program_case
from net_case import need


class _Broken(Exception):
    """The body ended in its middle."""


class _Server:
    """HTTP by hand, so that it can misbehave.  What it does hangs on the path."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.base = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        self.seen, self.broken = [], threading.Event()
        self.go_on = threading.Event()
        self.secure = None  # or a context of ssl
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        if self.secure:
            client = self.secure.wrap_socket(client, server_side=True)
        with client, client.makefile("rb") as stream:
            line = stream.readline().decode().split()
            fields = {}
            while True:
                text = stream.readline().decode().strip()
                if not text:
                    break
                name, value = text.split(":", 1)
                fields[name.lower()] = value.strip()
            self.seen.append((line, fields))
            try:
                getattr(self, "do_" + line[1][1:])(client, stream, fields)
            except (_Broken, ConnectionError):
                self.broken.set()

    def close(self):
        self.go_on.set()
        self.socket.close()

    @staticmethod
    def say(client, status, body, *fields):
        client.sendall(("HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (
            status, "".join(field + "\r\n" for field in fields), len(body), body)).encode())

    def pieces(self, stream, fields):
        left = int(fields.get("content-length", -1 if "transfer-encoding" in fields else 0))
        while left > 0:
            piece = stream.read(min(left, 65536))
            if not piece:
                raise _Broken
            left -= len(piece)
            yield piece
        while left < 0:
            line = stream.readline()
            if not line.endswith(b"\r\n"):
                raise _Broken
            size = int(line, 16)
            piece = stream.read(size)
            if len(piece) < size:
                raise _Broken
            stream.readline()
            if size == 0:
                return
            yield piece

    def do_take(self, client, stream, fields):
        if fields.get("expect") == "100-continue":
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        size, digest = 0, hashlib.sha256()
        for piece in self.pieces(stream, fields):
            size += len(piece)
            digest.update(piece)
        self.say(client, "200 OK", "%d %s" % (size, digest.hexdigest()))

    def do_refuse(self, client, stream, fields):
        stream.read(1000)
        self.say(client, "413 Too Large", "no")
        client.shutdown(socket.SHUT_WR)
        self.go_on.wait(program_case.LIMIT)

    def do_unwanted(self, client, stream, fields):
        self.say(client, "403 Forbidden", "not you")

    def do_stop(self, client, stream, fields):
        stream.read(1000)
        self.go_on.wait(program_case.LIMIT)
        while stream.read(65536):
            pass
        raise _Broken

    def do_reset(self, client, stream, fields):
        stream.read(1000)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.shutdown(socket.SHUT_RD)

    def do_see(self, client, stream, fields):
        for _ in self.pieces(stream, fields):
            pass
        self.say(client, "303 See Other", "", "Location: /take")

    def do_again(self, client, stream, fields):
        for _ in self.pieces(stream, fields):
            pass
        self.say(client, "307 Elsewhere", "", "Location: /take")


BEGIN = """
local errand = require 'errand'
local base = ...
local post = errand.http.post
local function pieces(count, size)
    local i = 0
    return function()
        i = i + 1
        if i <= count then return (tostring(i % 10)):rep(size) end
    end
end
local function say(...)
    local good, answer = pcall(...)
    if good then print(answer.status, answer.body)
    else print(type(answer) == 'table' and answer.code, answer) end
end
"""


def _run(case, server, text, *options):
    case.write("script.lua", BEGIN + text)
    return case.run("run", "-q", "script.lua", *options, "--", server.base)


def _with_server(test):
    def run(case):
        done = case.lua("local e = require 'errand' print(select(2, pcall(e.http.get, 'x:')).code)")
        if "unsupported" in done.out:
            raise program_case.Skip("libcurl is not here")
        server = _Server()
        try:
            test(case, server)
        finally:
            server.close()
    run.__name__ = test.__name__
    return run


def _reactors(case):
    done = case.run("run", "-q", case.write("p.lua", "require 'errand'.listen('127.0.0.1:0')"),
                    "--reactor", "io_uring")
    return ("io_uring", "epoll") if done.code == 0 else ("epoll",)


def _answer(data):
    return "200\t%d %s\n" % (len(data), hashlib.sha256(data).hexdigest())


@_with_server
def bodies_arrive_whole_where_the_connection_is_secure(case, server):
    need("openssl")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", case.path("key.pem"), "-out", case.path("cert.pem")],
                   check=True, stderr=subprocess.DEVNULL)
    server.secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.secure.load_cert_chain(case.path("cert.pem"), case.path("key.pem"))
    server.base = server.base.replace("http:", "https:")
    text = b"".join(b"%d" % (i % 10) * 30000 for i in range(1, 11))
    for reactor in _reactors(case):
        done = _run(case, server, """
            local trust = { ca_file = 'cert.pem' }
            say(post, base .. '/take', 'plain', trust)
            say(post, base .. '/take', pieces(10, 30000), trust)
            say(post, base .. '/take', pieces(0, 1), trust)
            say(post, base .. '/take', pieces(0, 1), { ca_file = 'cert.pem', size = 0 })
        """, "--reactor", reactor)
        expected = _answer(b"plain") + _answer(text) + _answer(b"") * 2
        assert done.code == 0 and done.out == expected, (expected, done)


@_with_server
def every_kind_of_body_arrives_whole(case, server):
    file = hashlib.shake_128(b"file").digest(700001)
    case.write("file", file)
    text = b"".join(b"%d" % (i % 10) * 30000 for i in range(1, 41))
    expected = (_answer(b"plain") * 2 + _answer(text) * 2 + _answer(b"") * 3 + _answer(file) * 2 +
                _answer(file[5:]) + _answer(b"one\ntwo\n") + _answer(text[:90000]))
    for reactor in _reactors(case):
        done = _run(case, server, """
            say(post, base .. '/take', 'plain')
            say(post, { url = base .. '/take', body = 'plain' })
            say(post, base .. '/take', pieces(40, 30000))
            say(post, { url = base .. '/take', body = pieces(40, 30000), size = 1200000 })
            say(post, base .. '/take', pieces(0, 1))
            say(post, base .. '/take', pieces(5, 0))
            say(post, base .. '/take', pieces(0, 1), { size = 0 })
            local file <close> = errand.open('file')
            file:seek('set', 5)
            say(post, base .. '/take', file)
            say(post, base .. '/take', file)
            say(post, base .. '/take', function() return file:read(1000) end)
            say(post, base .. '/take', errand.process { 'sh', '-c', 'echo one; echo two' })
            say(post, base .. '/take', pieces(3, 30000), { headers = { Expect = '100-continue' } })
        """, "--reactor", reactor)
        assert done.code == 0 and done.out == expected, (expected, done)
    chunked = [fields.get("transfer-encoding") == "chunked" for _, fields in server.seen[:12]]
    assert chunked == [False, False, True, False, True, True, False, False, False, True, True,
                       True], chunked
    assert [int(fields["content-length"]) for _, fields in server.seen[:12]
            if "content-length" in fields] == [5, 5, 1200000, 0, 700001, 700001]
    assert ["expect" in fields for _, fields in server.seen[:12]] == [False] * 11 + [True]


@_with_server
def a_body_may_wait_between_its_pieces(case, server):
    """It comes from another task, and each piece leaves before the next one is there."""
    done = _run(case, server, """
        local process <close> = errand.process { 'sh', '-c', 'read x; echo $x; read x; echo $x' }
        local task = errand.spawn(post, base .. '/take', process)
        errand.sleep(0.01)
        process:write('one\\n')
        errand.sleep(0.01)
        process:write('two\\n')
        say(errand.await, task)
    """)
    assert done.out == _answer(b"one\ntwo\n"), done


@_with_server
def what_is_no_body_is_refused_and_breaks_the_connection_off(case, server):
    done = _run(case, server, """
        say(post, base .. '/take')
        say(post, base .. '/take', {})
        say(post, base .. '/take', true)
        say(post, base .. '/take', 'text', { size = 4 })
        say(post, { url = base .. '/take', body = 'x', bodi = 1 })
        say(post, base .. '/take', 'x', { url = 'x' })
        say(errand.http.get, { url = base .. '/take', body = 'x' })
        local file = errand.open(arg[0])
        file:close()
        say(post, base .. '/take', file)
    """)
    lines = done.out.splitlines()
    assert len(lines) == 8 and not server.seen, (lines, server.seen)
    for line, part in zip(lines, ("the body is missing", "not table", "not boolean", "has its own",
                                  "'bodi'", "stand before the table", "a get has no body",
                                  "closed\t")):
        assert part in line, (part, line)
    for text, part in (("pieces(3, 10), { size = 31 }", "inval\t.*ended 1 bytes before its size"),
                       ("pieces(3, 10), { size = 29 }", "inval\t.*longer than its size of 29"),
                       ("function() error('of mine') end", "of mine"),
                       ("function() return {} end", "gave a table instead of a string")):
        server.broken.clear()
        done = _run(case, server, "say(post, base .. '/take', %s) errand.sleep(30)" % text,
                    "--deadline", "0.5")
        assert program_case.re.search(part, done.out), (part, done)
        assert server.broken.wait(program_case.LIMIT), part


@_with_server
def a_server_that_answers_early_ends_the_body(case, server):
    for body in ("pieces(1e9, 65536)", "pieces(1e9, 65536), { size = 1 << 45 }"):
        for path, code in (("/refuse", "413\tno"), ("/unwanted", "403\tnot you")):
            done = _run(case, server, "say(post, base .. '%s', %s)" % (path, body))
            # A server that closes with bytes unread resets, and takes its answer along.
            assert done.out == code + "\n" or path == "/unwanted" and "_failed" in done.out, done


@_with_server
def a_server_that_stops_reading_or_resets_is_told_in_time(case, server):
    done = _run(case, server, """
        say(post, base .. '/stop', pieces(1e9, 65536), { timeout = 0.2 })
        say(errand.timeout, 0.2, post, base .. '/stop', pieces(1e9, 65536))
        say(post, base .. '/reset', pieces(1e9, 65536))
        say(post, 'http://127.0.0.1:1/', pieces(1, 1))
    """)
    codes = [line.split("\t")[0] for line in done.out.splitlines()]
    assert codes[:2] == ["timeout", "timeout"] and codes[3] == "connection_failed", done
    assert codes[2] in ("receive_failed", "send_failed"), done
    assert not server.broken.is_set()
    server.go_on.set()  # now it reads on, and finds the end
    assert server.broken.wait(program_case.LIMIT)


# L10
@_with_server
def a_redirect_takes_no_body_in_pieces_along(case, server):
    done = _run(case, server, """
        say(post, base .. '/see', pieces(3, 10))
        say(post, base .. '/again', pieces(3, 10))
        say(post, base .. '/again', 'text')
    """)
    lines = done.out.splitlines()
    assert lines[0].startswith("200\t") and server.seen[1][0][0] == "GET", done
    assert lines[1].startswith("redirects\t") and "is sent once" in lines[1], done
    assert lines[2] + "\n" == _answer(b"text"), done


@_with_server
def memory_stays_bounded_and_a_slow_server_is_waited_for(case, server):
    count = 800 if program_case.SANITIZED else 3200 * program_case.SCALE  # of 64 KiB
    case.write("script.lua", BEGIN + """
        local piece, i = ('x'):rep(65536), 0
        say(post, base .. '/take', function() i = i + 1 if i <= %d then return piece end end)
        for line in io.lines('/proc/self/status') do
            if line:find('VmHWM') then print(line:match('%%d+')) end
        end""" % count)
    done = case.run("run", "-q", "script.lua", "--", server.base)
    assert done.out.startswith("200\t%d " % (count * 65536)), done
    assert program_case.SANITIZED or int(done.out.split()[-1]) < 60000, done


@_with_server
def a_signal_in_the_middle_ends_the_upload(case, server):
    case.write("script.lua", BEGIN + "print('ready') io.stdout:flush()\n"
               "post(base .. '/take', pieces(1e9, 65536))")
    process = case.start("run", "-q", "script.lua", "--", server.base)
    before = program_case.read_until(process.stdout, "ready")
    limit = time.monotonic() + program_case.LIMIT
    while not server.seen:
        assert time.monotonic() < limit
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    done = case.end(process, before)
    assert done.code == 130 and "stopped from outside by SIGINT" in done.err, done
    assert server.broken.wait(program_case.LIMIT)


@_with_server
def an_upload_is_the_seeds_and_can_be_replayed(case, server):
    text = """
        local file <close> = errand.open('file')
        say(post, base .. '/take', pieces(4, 1000))
        say(post, base .. '/take', pieces(4, 1000), { size = 4000 })
        say(post, base .. '/take', file)
        say(post, base .. '/take', pieces(4, 1000), { size = 4001 })
    """
    data = hashlib.shake_128(b"file").digest(150000)
    case.write("script.lua", BEGIN + text)
    for order in ("inline", "paced", "arrival"):
        case.write("file", data)
        words = ["--order", order] + (["--seed", "5"] if order != "arrival" else [])
        digests, outs = set(), set()
        for turn in range(2):
            done = case.run("run", "script.lua", *words, "--record", "log%d" % turn,
                            "--record-payloads", "--", server.base)
            assert done.code == 0, done
            outs.add("".join(line + "\n" for line in done.out.splitlines()
                             if line[:3] in ("200", "inv")))
            if order != "arrival":
                digests.add(program_case.digest_of(done.out))
        assert len(digests) <= 1 and len(outs) == 1, (order, digests, outs)
        os.remove(case.path("file"))
        before = len(server.seen)
        done = case.run("run", "-q", "script.lua", "--replay", "log1", "--", server.base)
        assert done.code == 0 and done.out == outs.pop(), (order, done)
        assert len(server.seen) == before
    assert _answer(data) in done.out and "4001" in done.out, done


if __name__ == "__main__":
    program_case.main(globals())
