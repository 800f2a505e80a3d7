-- SPDX-License-Identifier: MIT
-- Goal: scripts write servers and clients: streams, datagrams, processes, signals and requests
-- work, end and fail as docs/lua.md says, on each back end.  Method: loopback, both sides in one
-- run, in arrival order; peers that are other programs in seeded orders and in tests/tools.
local check = require "check"
local errand = require "errand"
local equal, contains = check.equal, check.contains

local both = check.both

-- A connected pair: ours, and the one that was accepted.
local function pair(options)
    local listener <close> = errand.listen("127.0.0.1:0")
    local accepted = errand.spawn(listener.accept, listener)
    return errand.connect(listener:address(), options), errand.await(accepted)
end

both("a_stream_carries_bytes_both_ways_and_ends", function()
    local a, b <close> = pair()
    equal(a:peer(), b:address())
    equal(b:peer(), a:address())
    a:send("one", "two", 3)
    equal(b:recv(4), "onet")
    equal(b:recv_some(), "wo3")
    equal(errand.send(b, "back\0bytes\255"), nil)
    equal(errand.recv(a, 11), "back\0bytes\255")
    a:shutdown()
    equal(b:recv_some(), nil)
    equal(b:recv_some(), nil)
    b:send("after the end")
    equal(a:recv(13), "after the end")
    check.raises_code("closed", a.send, a, "x")
    errand.close(b)
    check.raises_code("closed", b.send, b, "x")
    equal(a:recv_some(), nil)
    errand.close(b)
end)

both("a_large_message_arrives_whole_while_its_reader_is_slow", function()
    local a, b <close> = pair()
    local text = ("0123456789abcdef"):rep(1 << 18) -- 4 MiB
    local writer = errand.spawn(a.send, a, text)
    equal(errand.status(writer) ~= "failed", true)
    equal(b:recv(1 << 20), text:sub(1, 1 << 20))
    local rest, got = {}, 1 << 20
    while got < #text do
        rest[#rest + 1] = b:recv_some(100000)
        got = got + #rest[#rest]
    end
    equal(table.concat(rest) == text:sub((1 << 20) + 1), true)
    errand.await(writer)
end)

both("lines_and_bytes_can_be_mixed", function()
    local a, b <close> = pair()
    a:send("first\nsecond\r\n\n\r\n12345678tail")
    equal(b:recv_line(), "first")
    equal(b:recv_line(), "second")
    equal(b:recv_line(), "")
    equal(b:recv_line(), "")
    equal(b:recv(4), "1234")
    equal(b:peek(2), "56")
    equal(b:recv_some(2), "56")
    a:send("!")
    equal(b:recv(7), "78tail!")
    local task = errand.spawn(b.recv_line, b)
    errand.sleep(0.001)
    for _, part in ipairs { "in ", "three ", "parts\nand no end" } do a:send(part) end
    equal(errand.await(task), "in three parts")
    a:shutdown()
    equal(b:recv_line(), "and no end")
    equal(b:recv_line(), nil)
end)

both("a_line_that_is_too_long_is_an_error_and_its_bytes_stay", function()
    local a, b <close> = pair()
    a:send(("x"):rep(20), "\r\n")
    equal(errand.timeout(10, function()
        while #b:peek() < 22 do errand.yield() end
        return #b:peek()
    end), 22)
    check.raises_code("too_large", b.recv_line, b, 19)
    equal(b:recv_line(20), ("x"):rep(20))
end)

both("a_recv_that_is_out_has_the_kept_bytes", function()
    local a, b <close> = pair()
    a:send("l\nkept")
    equal(b:recv_line(), "l")
    local task = errand.spawn(b.recv, b, 8)
    errand.sleep(0.001)
    check.raises_code("busy", b.recv_some, b)
    check.raises_code("busy", b.recv, b, 1)
    a:send("more")
    equal(errand.await(task), "keptmore")
end)

both("pieces_come_in_a_for_loop", function()
    local a, b <close> = pair()
    errand.spawn(function()
        for i = 1, 100 do a:send(("%03d"):format(i)) end
        a:shutdown()
    end)
    local all = {}
    for bytes in b do all[#all + 1] = bytes end
    local text = table.concat(all)
    equal(#text, 300)
    equal(text:sub(1, 6) .. text:sub(-6), "001002099100")
end)

both("an_exact_recv_fails_when_the_peer_ends_before", function()
    local a, b <close> = pair()
    a:send("abc")
    a:close()
    contains(tostring(check.raises_code("receive_failed", b.recv, b, 4)), "3 of 4")
    check.raises_code("closed", b.recv, b, 1) -- that half is poisoned
end)

both("a_reset_by_the_peer_is_an_error_with_its_errno", function()
    local a, b <close> = pair({ linger = true })
    a:close()
    equal(check.raises_code("receive_failed", b.recv, b, 1).errno_name, "ECONNRESET")
end)

both("limits_end_what_waits_too_long", function()
    local a, b <close> = pair()
    b:set { receive_timeout = 0.02 }
    check.raises_code("timeout", b.recv, b, 1)
    check.raises_code("closed", b.recv, b, 1)
    b:set { send_timeout = 0.02, send_buffer = 4096 }
    check.raises_code("timeout", b.send, b, ("x"):rep(1 << 24)) -- nobody reads
    a:set { receive_timeout = false }
    check.raises(a.set, a, { receive_timeout = -1 })
    check.raises(a.set, a, { patience = 1 })
end)

both("a_cancel_ends_a_wait_and_poisons_that_half_alone", function()
    local a, b <close> = pair()
    local task = errand.spawn(b.recv, b, 1)
    errand.sleep(0.001)
    errand.cancel(task)
    check.raises_code("cancelled", errand.await, task)
    check.raises_code("closed", b.recv, b, 1)
    b:send("fine")
    equal(a:recv(4), "fine")
end)

both("an_object_serves_again_as_soon_as_a_wait_on_it_was_given_up", function()
    local udp <close> = errand.udp("127.0.0.1:0")
    local listener <close> = errand.listen("127.0.0.1:0")
    local signals <close> = errand.signal("USR2")
    local child <close> = errand.process { "cat" }
    for _, wait in ipairs { { udp.recv, udp }, { listener.accept, listener },
                            { signals.next, signals }, { child.read, child } } do
        for _ = 1, 5 do
            check.raises_code("timeout", errand.timeout, 0.002, wait[1], wait[2])
        end
        local task = errand.spawn(wait[1], wait[2])
        errand.select { task, errand.spawn(errand.sleep, 0.002) } -- aborts it
    end
    local near = errand.connect(listener:address())
    near:send("x")
    local far <close> = listener:accept()
    equal(far:recv(1), "x")
    udp:send("to itself", udp:address())
    equal(udp:recv(), "to itself")
end)

check.test("an_object_serves_again_at_once_in_a_seeded_order", function()
    for seed = 1, 8 do
        errand.run(function()
            local udp <close> = errand.udp("127.0.0.1:0")
            for _ = 1, 6 do udp:send("to itself", udp:address()) end
            local late = 0
            for _ = 1, 5 do -- what had begun takes one, and nobody hears of it
                local good, problem = pcall(errand.timeout, 1e-6, udp.recv, udp)
                late = late + (good and 0 or 1)
                if not good then equal(problem.code, "timeout") end
            end
            equal(late > 0, true)
            equal(udp:recv(), "to itself")
        end, { seed = seed })
    end
end)

both("no_recv_gives_what_comes_behind_bytes_of_which_nobody_heard", function()
    for round = 1, 60 do -- some waits are given up just when their bytes have come
        local a, b <close> = pair()
        a:send("12345678")
        local heard, verb = "", round % 2 == 0 and b.recv or b.recv_some
        for _ = 1, 8 do
            local good, bytes = pcall(errand.timeout, round % 6 * 1e-6, verb, b, 1)
            if not good and bytes.code == "closed" then break end
            heard = heard .. (good and bytes or "")
        end
        equal(heard, ("12345678"):sub(1, #heard))
    end
end)

both("closing_ends_who_waits_there", function()
    local a, b <close> = pair()
    local listener = errand.listen("127.0.0.1:0")
    local waiting = { errand.spawn(b.recv, b, 1), errand.spawn(listener.accept, listener) }
    errand.sleep(0.002)
    b:close()
    listener:close()
    for _, task in ipairs(waiting) do check.raises_code("closed", errand.await, task) end
    check.raises_code("closed", listener.accept, listener)
end)

both("who_cannot_be_reached_is_named", function()
    local listener = errand.listen("127.0.0.1:0")
    local address = listener:address()
    check.raises_code("bind_failed", errand.listen, address)
    listener:close()
    local problem = check.raises_code("connection_failed", errand.connect, address)
    equal(problem.errno_name, "ECONNREFUSED")
    contains(tostring(problem), address)
    check.raises_code("inval", errand.connect, "nothing")
    contains(tostring(check.raises_code("inval", errand.connect, "[::1]:99999")),
             "ports end at 65535")
    contains(tostring(check.raises_code("not_found", errand.connect, "127.0.0.1:99999")),
             "ports are the numbers from 0 to 65535")
    check.raises_code("inval", errand.connect, "")
    check.raises(errand.connect, address, { patience = 1 })
end)

both("names_are_looked_up_before", function()
    local listener <close> = errand.listen("localhost:0")
    local port = listener:address():match("%d+$")
    local task = errand.spawn(listener.accept, listener)
    local a <close> = errand.connect("localhost:" .. port, { timeout = 30, nodelay = false })
    local b <close> = errand.accept and errand.await(task)
    a:send("x")
    equal(b:recv(1), "x")
end)

both("paths_and_abstract_names_are_addresses", function()
    local path = os.tmpname()
    os.remove(path)
    local listener <close> = errand.listen("unix:" .. path, { mode = 384 })
    equal(errand.stat(path).mode, 384)
    local task = errand.spawn(errand.accept, listener)
    local a <close> = errand.connect("unix:" .. path)
    local b <close> = errand.await(task)
    b:send("over a path")
    equal(a:recv(11), "over a path")
    listener:close()
    while pcall(errand.stat, path) do errand.sleep(0.001) end -- it goes soon
    check.raises_code("not_found", errand.stat, path)
end)

both("packets_have_ends_and_senders", function()
    local a, b <close> = errand.udp("127.0.0.1:0"), errand.udp("127.0.0.1:0")
    a:send("one", b:address())
    a:send("", b:address())
    a:send("three", b:address())
    local bytes, from, cut = b:recv()
    equal(bytes, "one")
    equal(from, a:address())
    equal(cut, false)
    equal(b:recv(), "")
    bytes, from, cut = b:recv(3)
    equal(bytes, "thr")
    equal(cut, true)
    local c <close> = errand.udp("127.0.0.1:0", { to = b:address() })
    errand.send(c, "to the one")
    equal(errand.recv(b), "to the one")
    check.raises_code("inval", a.send, a, "x", "localhost:1")
end)

both("a_process_is_written_to_and_read_from_while_it_runs", function()
    local p <close> = errand.process { "sh", "-c", "while read x; do echo \"<$x>\"; done; exit 4" }
    for i = 1, 20 do
        p:write(i .. "\n")
        equal(p:read(), "<" .. i .. ">\n")
    end
    p:end_input()
    equal(p:read(), nil)
    equal(p:wait().status, 4)
    equal(p:wait().status, 4)
    equal(p:kill(), false)
end)

both("errors_go_where_they_are_wanted", function()
    local words = { "sh", "-c", "echo out; echo err >&2" }
    words.errors = "pipe"
    local p <close> = errand.process(words)
    equal(p:read(), "out\n")
    equal(p:read_errors(), "err\n")
    words.errors, words.stream = nil, true
    local all = ""
    local together <close> = errand.command(words)
    for text in together do all = all .. text end
    equal(all, "out\nerr\n")
    words.errors = "none"
    all = ""
    for text in errand.process(words) do all = all .. text end
    equal(all, "out\n")
    check.raises(errand.process, { "sh", "-c", "true", output_max = 3 })
    check.raises(errand.process, { "sh", errors = "away" })
end)

both("a_process_can_be_ended_and_ends_with_its_owner", function()
    local p = errand.process { "sleep", "1000" }
    equal(p:kill("TERM"), true)
    equal(p:wait().signal, 15)
    p = errand.process { "sleep", "1000" }
    local waiter = errand.spawn(p.wait, p)
    errand.sleep(0.002)
    p:close()
    equal(errand.await(waiter).signal, 9)
    errand.process { "sleep", "1000" } -- collected, or ended with the run
    check.raises_code("not_found", errand.process, { "no-such-command-here" })
end)

both("signals_are_items", function()
    local signals <close> = errand.signal("USR1", "SIGUSR2")
    errand.command { "sh", "-c", "kill -USR1 $PPID" }
    local name, told = signals:next()
    equal(name, "USR1")
    equal(told.number, 10)
    equal(math.type(told.pid), "integer")
    errand.command { "sh", "-c", "kill -USR2 $PPID" }
    equal(signals(), "USR2")
    check.raises_code("inval", errand.signal, "USR9")
    check.raises_code("inval", errand.signal, "KILL")
    local waiter = errand.spawn(signals.next, signals)
    errand.sleep(0.001)
    signals:close()
    check.raises(errand.await, waiter)
end)

check.test("a_signal_that_nobody_took_is_dropped_with_the_run", function()
    for _ = 1, 2 do
        errand.run(function()
            errand.signal("USR1")
            errand.command { "sh", "-c", "kill -USR1 $PPID" }
        end)
    end
end)

check.test("objects_outlive_their_run_and_serve_the_next", function()
    local a, b = errand.run(function()
        local c, d = pair()
        c:send("line\nrest")
        d:recv_line()
        return c, d
    end)
    equal(errand.run(function() a:send("!") return b:recv(5) end), "rest!")
    a, b = nil, nil
    collectgarbage()
end)

check.test("streams_that_nobody_holds_close_themselves", function()
    errand.run(function()
        local listener <close> = errand.listen("127.0.0.1:0")
        local task = errand.spawn(listener.accept, listener)
        do local a = errand.connect(listener:address()) a:send("x") end
        local b <close> = errand.await(task)
        collectgarbage()
        collectgarbage()
        equal(b:recv(1), "x")
        equal(b:recv_some(), nil)
    end)
end)

check.test("outside_of_a_run_the_verbs_name_errand_run", function()
    for _, verb in ipairs { errand.connect, errand.listen, errand.udp, errand.process,
                            errand.signal, errand.http.get } do
        contains(tostring(check.raises_code("misuse", verb, "127.0.0.1:1")), "errand.run")
    end
    contains(check.raises(errand.run, print, { reactor = "select" }), "io_uring")
end)

check.finish()
