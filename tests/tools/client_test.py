# SPDX-License-Identifier: MIT
"""Clients in Lua against servers that are not ours: Python's, nginx; in every order, recorded
and replayed; and the forwarder between two programs.   client_test.py PROGRAM"""
import hashlib
import http.server
import os
import pty
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
import program_case
from net_case import ROOT, connect, need, read_all, serve, stop, wait_until

DOWNLOADER = os.path.join(ROOT, "examples", "downloader.lua")


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = hashlib.sha256(body).hexdigest().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class _Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while True:
            piece = self.request.recv(65536)
            if not piece:
                return
            self.request.sendall(piece)


def _python(case, handler):
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, server.server_address[1]


def _files(case, count, size):
    for i in range(count):
        case.write("from/file%d" % i, hashlib.shake_128(b"%d" % i).digest(size + i))
    os.makedirs(case.path("to"), exist_ok=True)


def _download(case, base, count, *words):
    urls = ["%s/file%d" % (base, i) for i in range(count)]
    done = case.run("run", "-q", DOWNLOADER, "--", "--to", "to", *words, *urls)
    assert done.code == 0, done
    for i in range(count):
        with open(case.path("from/file%d" % i), "rb") as a, open(case.path("to/file%d" % i),
                                                                 "rb") as b:
            assert a.read() == b.read(), i
    assert len(os.listdir(case.path("to"))) == count
    return done


def _needs_http(case):
    done = case.lua("local e = require 'errand' print(select(2, pcall(e.http.get, 'x:')).code)")
    if "unsupported" in done.out:
        raise program_case.Skip("libcurl is not here")


def the_downloader_gets_every_byte_from_a_python_server(case):
    _needs_http(case)
    _files(case, 12, 700000)
    server, port = _python(case, lambda *a: _Files(*a, directory=case.path("from")))
    done = _download(case, "http://localhost:%d" % port, 12, "--at-once", "5")
    assert "12 of 12 files, 8400066 bytes\n" in done.out, done
    done = case.run("run", "-q", DOWNLOADER, "--", "--to", "to",
                    "http://127.0.0.1:%d/none" % port, "http://127.0.0.1:1/x", "nonsense")
    assert done.code == 1 and done.out == "0 of 3 files, 0 bytes\n", done
    lines = done.err.splitlines()
    assert len(lines) == 3 and "404" in done.err and "lua:" not in done.err, done
    for url in "/none", "http://127.0.0.1:1/x", "nonsense":
        assert sum(line.count(url) for line in lines) == 1, done
    server.shutdown()


def the_downloader_says_its_options_and_refuses_others(case):
    done = case.run("run", "-q", DOWNLOADER, "--", "--help")
    assert done.code == 0 and done.out.startswith("usage: ") and done.err == "", done
    for words in ((), ("--two", "here", "http://x/"), ("--at-once", "0", "http://x/"),
                  ("--at-once", "some", "http://x/"), ("http://x/", "--to")):
        done = case.run("run", "-q", DOWNLOADER, "--", *words)
        assert done.code == 2 and done.out == "" and done.err.count("\n") == 1, done


def the_downloader_gets_every_byte_from_nginx(case):
    need("nginx")
    _needs_http(case)
    _files(case, 8, 3000000)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    case.write("nginx.conf", """
daemon off; pid %(at)s/pid; error_log %(at)s/errors; worker_processes 1;
events { worker_connections 64; }
http { access_log off; client_body_temp_path %(at)s/a; proxy_temp_path %(at)s/b;
  fastcgi_temp_path %(at)s/c; uwsgi_temp_path %(at)s/d; scgi_temp_path %(at)s/e;
  server { listen 127.0.0.1:%(port)d; root %(at)s/from; } }
""" % {"at": case.folder, "port": port})
    os.chmod(case.folder, 0o755)
    nginx = subprocess.Popen([shutil.which("nginx"), "-c", case.path("nginx.conf"), "-e",
                              case.path("errors")], stderr=subprocess.DEVNULL)

    def listens():
        assert nginx.poll() is None, open(case.path("errors")).read()
        try:
            connect(port).close()
        except OSError:
            return False
        return True
    try:
        wait_until(listens, "nginx does not listen")
        _download(case, "http://127.0.0.1:%d" % port, 8)
    finally:
        nginx.terminate()
        nginx.wait()


def on_a_terminal_the_downloader_draws_a_bar(case):
    _needs_http(case)
    _files(case, 3, 100000)
    server, port = _python(case, lambda *a: _Files(*a, directory=case.path("from")))
    ours, theirs = pty.openpty()
    urls = ["http://127.0.0.1:%d/file%d" % (port, i) for i in range(3)]
    process = case.start("run", "-q", DOWNLOADER, "--", "--to", "to", *urls, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    assert case.end(process).code == 0
    os.close(ours)
    assert b"[##############################] 100 %" in shown, shown
    assert b"3 of 3 files" in shown, shown
    server.shutdown()


def a_post_arrives_whole(case):
    _needs_http(case)
    server, port = _python(case, _Files)
    body = hashlib.shake_128(b"post").digest(3000000)
    case.write("body", body)
    done = case.lua("local e = require 'errand' local r = e.http.post("
                    "'http://127.0.0.1:%d/', e.read_file('body')) print(r.status, r.body)" % port)
    assert "200\t" + hashlib.sha256(body).hexdigest() in done.out, done
    server.shutdown()


CHECKS = """
local errand = require 'errand'
local url = 'https://localhost:' .. ... .. '/file0'
local good, problem = pcall(errand.http.get, url)
print(good, problem.code)
print(#errand.http.get(url, { ca_file = 'cert.pem' }).body)
print(#errand.http.get(url, { unchecked = true }).body)
good, problem = pcall(errand.http.get, url:gsub('localhost', '127.0.0.1'), { ca_file = 'cert.pem' })
print(good, problem.code)
"""


def certificates_are_checked(case):
    _needs_http(case)
    need("openssl")
    _files(case, 1, 1000)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", case.path("key.pem"), "-out", case.path("cert.pem")],
                   check=True, stderr=subprocess.DEVNULL)
    server, port = _python(case, lambda *a: _Files(*a, directory=case.path("from")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(case.path("cert.pem"), case.path("key.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *a: None
    case.write("script.lua", CHECKS)
    done = case.run("run", "-q", "script.lua", "--", str(port))
    assert done.out == "false\tcertificate\n1000\n1000\nfalse\tcertificate\n", done
    server.shutdown()


TALK = """
local errand = require 'errand'
local stream <close> = errand.connect('127.0.0.1:' .. ...)
for i = 1, 5 do
    stream:send('line ' .. i .. '\\n')
    print(stream:recv_line())
end
local process <close> = errand.process { 'sh', '-c', 'read x; echo "got $x"; exit 3' }
process:write('this\\n')
process:end_input()
for text in process do io.write(text) end
print(process:wait().status)
"""


def a_talk_with_an_outside_server_is_the_seeds_and_can_be_replayed(case):
    server, port = _python(case, _Echo)
    case.write("talk.lua", TALK)
    expected = "".join("line %d\n" % i for i in range(1, 6)) + "got this\n3\n"
    for order in ("inline", "paced", "arrival"):
        words = ["--order", order] + (["--seed", "5"] if order != "arrival" else [])
        digests = set()
        for turn in range(2):
            done = case.run("run", "talk.lua", *words, "--record", "log%d" % turn,
                            "--record-payloads", "--", str(port))
            assert done.code == 0, done
            assert "".join(line + "\n" for line in done.out.splitlines()
                           if line[:4] in ("line", "got ") or line == "3") == expected, done
            if order != "arrival":
                digests.add(program_case.digest_of(done.out))
            os.rename(case.path("log%d" % turn), case.path("log"))
        assert len(digests) <= 1, digests
        done = case.run("run", "-q", "talk.lua", "--replay", "log", "--", str(port))
        assert done.code == 0 and done.out == expected, (order, done)
    server.shutdown()


def the_forwarder_passes_every_byte_both_ways(case):
    server, port = _python(case, _Echo)
    forwarder, at = serve(case, "port_forward.lua", "--listen", "127.0.0.1:0", "--to",
                          "localhost:%d" % port)
    said = hashlib.shake_128(b"forward").digest(4 << 20)
    clients = [connect(at) for _ in range(10)]

    def say(client):
        client.sendall(said)
        client.shutdown(socket.SHUT_WR)
    talkers = [threading.Thread(target=say, args=(client,)) for client in clients]
    heard = [None] * len(clients)

    def hear(i):
        heard[i] = read_all(clients[i])
    talkers += [threading.Thread(target=hear, args=(i,)) for i in range(len(clients))]
    for talker in talkers:
        talker.start()
    for talker in talkers:
        talker.join()
    assert all(h == said for h in heard), [len(h) for h in heard]
    stop(case, forwarder)
    server.shutdown()


def the_forwarder_says_who_cannot_be_reached(case):
    forwarder, at = serve(case, "port_forward.lua", "--listen", "127.0.0.1:0", "--to",
                          "127.0.0.1:1")
    assert read_all(connect(at)) == b""
    assert "127.0.0.1:1" in forwarder.stderr.readline()
    stop(case, forwarder)


def a_reactor_that_is_none_is_refused(case):
    done = case.lua("print(1)", "--reactor", "select")
    assert done.code == 2 and "io_uring or epoll" in done.err, done


if __name__ == "__main__":
    program_case.main(globals())
