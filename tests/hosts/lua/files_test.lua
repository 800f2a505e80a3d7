-- SPDX-License-Identifier: MIT
-- Goal: open files, and the verbs that change names, do what docs/lua.md says: in every order, on each
-- back end, for several tasks at once, and when they are cancelled or let go.
-- Method: real files in a folder of its own, a FIFO of mkfifo.
local check = require "check"
local errand = require "errand"
local equal, contains = check.equal, check.contains

local folder = os.tmpname()
os.remove(folder)
errand.run(function() errand.make_dir(folder) end)
local function at(name) return folder .. "/" .. name end

local ways = {
    { reactor = "io_uring" }, { reactor = "epoll" },
    { order = "inline", seed = 5 }, { order = "paced", seed = 5 },
}
local function test(name, body)
    for _, way in ipairs(ways) do
        check.test(name .. "_" .. (way.reactor or way.order), function()
            local good, problem = pcall(errand.run, body, {
                reactor = way.reactor, order = way.order, seed = way.seed, deadline = 60 })
            if good or type(problem) == "table" and problem.code == "unsupported" then return end
            error(problem, 0)
        end)
    end
end

local function descriptors()
    collectgarbage()
    collectgarbage()
    return #errand.list_dir("/proc/self/fd")
end

test("a_file_is_written_and_read_where_it_stands", function()
    local f <close> = errand.open(at "a", "w+")
    equal(f:write("hello "), 6)
    equal(f:write("world\0!"), 7)
    equal(f:read(), nil)
    equal(f:seek(), 13)
    equal(f:seek("set", 6), 6)
    equal(f:read(5), "world")
    equal(f:read(100), "\0!")
    equal(f:read(1), nil)
    equal(f:read("a"), "")
    equal(f:seek("end", -7), 6)
    equal(f:read("a"), "world\0!")
    equal(f:seek("cur", -1), 12)
    equal(f:stat().size, 13)
    equal(f:stat().kind, "regular")
    f:sync()
    f:sync("data")
    equal(errand.read_file(at "a"), "hello world\0!")
end)

-- L2
test("an_offset_leaves_the_position_where_it_is", function()
    local f <close> = errand.open(at "b", "w+")
    f:write("0123456789")
    equal(f:read(3, 4), "456")
    equal(f:read("a", 8), "89")
    equal(f:read(5, 10), nil)
    equal(f:read("a", 99), "")
    equal(f:write("x", 0), 1)
    equal(f:write("end", 12), 3)
    equal(f:seek(), 10)
    equal(f:read("a", 0), "x123456789\0\0end")
    check.raises_code("too_large", f.read, f, "a", 0, 14)
    equal(#f:read("a", 0, 15), 15)
end)

test("modes_are_those_of_io_open_and_x", function()
    check.raises_code("not_found", errand.open, at "none")
    check.raises_code("not_found", errand.open, at "none", "r+")
    errand.open(at "c", "w"):write("first")
    check.raises_code("exists", errand.open, at "c", "wx")
    do
        local f <close> = errand.open(at "c", "r+b")
        f:write("F")
        equal(f:read("a"), "irst")
    end
    do
        local f <close> = errand.open(at "c", "a+")
        equal(f:write("-more"), 5)
        equal(f:read("a"), "First-more")
        f:seek("set", 0)
        f:write("!")
        equal(f:read("a"), "First-more!")
    end
    errand.open(at "c", "w"):close()
    equal(errand.stat(at "c").size, 0)
    local f <close> = errand.open(at "c", "r")
    check.raises_code("io", f.write, f, "x") -- EBADF
    errand.open(at "new", "wx", { permissions = tonumber("600", 8), synced = true }):close()
    equal(("%o"):format(errand.stat(at "new").mode), "600")
    errand.remove_file(at "new")
end)

test("what_is_wrong_is_said", function()
    local f <close> = errand.open(at "d", "w+")
    contains(check.raises(errand.open, at "d", "q"), "a mode is")
    contains(check.raises(errand.open, at "d", "rx"), "a mode is")
    contains(check.raises(errand.open, at "d", "w", { mode = 1 }), "permissions and synced")
    check.raises_code("inval", errand.open, "")
    contains(check.raises(errand.open, "a\0b"), "zero byte")
    contains(check.raises(f.read, f, "l"), "lines()")
    contains(check.raises(f.read, f, 0), "1 to 2^30")
    contains(check.raises(f.read, f, 1, -1), "negative")
    contains(check.raises(f.read, f, 1, 0, 5), "of 'a'")
    check.raises(f.write, f)
    check.raises(f.write, f, {})
    check.raises(f.seek, f, "middle")
    contains(check.raises(f.seek, f, "set", -1), "negative")
    check.raises_code("io", f.seek, f, "cur", -1)
    check.raises(f.sync, f, "fast")
    check.raises_code("is_directory", errand.open, folder, "w")
    local d <close> = errand.open(folder)
    check.raises_code("is_directory", d.read, d)
    f:close()
    for _, name in ipairs { "read", "write", "seek", "sync", "stat", "lines" } do
        check.raises_code("closed", f[name], f, "set")
    end
    f:close()
end)

-- L1
test("what_two_tasks_do_with_one_file_is_one_after_the_other_as_started", function()
    local f <close> = errand.open(at "e", "w+")
    local expected, tasks = {}, {}
    for i = 1, 100 do
        tasks[i] = errand.spawn(function()
            local line = ("%03d %s\n"):format(i, ("x"):rep(errand.random(200)))
            expected[#expected + 1] = line
            f:write(line)
        end)
    end
    errand.gather(tasks)
    equal(f:read("a", 0), table.concat(expected))
    f:seek("set")
    local got = {}
    for i = 1, 8 do
        tasks[i] = errand.spawn(function()
            local place = #got + 1
            got[place] = ""
            got[place] = f:read(500)
        end)
    end
    for i = 1, 8 do errand.await(tasks[i]) end
    equal(table.concat(got), table.concat(expected):sub(1, 4000))
    equal(f:seek(), math.min(4000, #table.concat(expected)))
end)

-- L2
test("lines_and_pieces_come_in_a_for_loop", function()
    local f <close> = errand.open(at "f", "w+")
    f:write("one\n\nthree\r\n" .. ("x"):rep(200000) .. "\nlast")
    local got = {}
    for line in f:lines() do got[#got + 1] = #line end
    equal(table.concat(got, " "), "3 0 6 200000 4")
    equal(f:seek(), 200017) -- lines have offsets of their own
    local first, other = f:lines(), f:lines(4)
    equal(first(), "one")
    equal(other(), "")
    equal(first(), "")
    equal(other(), "three\r")
    local short = f:lines(12, 100)
    check.raises_code("too_large", short)
    f:write("\nmore\n", 200017)
    local after = f:lines(200013)
    equal(after(), "last")
    equal(after(), "more")
    equal(after(), nil)
    f:write("and more\n", 200023)
    equal(after(), "and more")
    f:seek("set")
    local size = 0
    for bytes in f do size = size + #bytes end
    equal(size, 200032)
    check.raises_code("closed", function()
        for _ in f:lines() do f:close() end
    end)
end)

-- L5
test("a_truncated_file_is_cut_or_grows_and_its_position_stays", function()
    local f <close> = errand.open(at "t", "w+")
    f:write("0123456789")
    f:truncate(4)
    equal(f:stat().size, 4)
    equal(f:seek(), 10)
    f:truncate(6)
    equal(f:read("a", 0), "0123\0\0")
    contains(check.raises(f.truncate, f, -1), "negative")
    check.raises(f.truncate, f)
    check.raises_code("io", errand.open(at "t").truncate, errand.open(at "t"), 0)
end)

-- L3
test("a_close_waits_and_tells_what_failed", function()
    local libc = errand.ffi.open(nil)
    local close = libc:fn("close", "i32 (i32)")
    local function number_of(path)
        for _, entry in ipairs(errand.list_dir("/proc/self/fd")) do
            local link = libc:fn("readlink", "i64 (string, out bytes, u64)")
            local size, target = link("/proc/self/fd/" .. entry.name, 4096, 4096)
            if size > 0 and target:sub(1, size) == path then return tonumber(entry.name) end
        end
    end
    local f = errand.open(at "u", "w")
    equal(close(number_of(at "u")), 0) -- behind its back
    local problem = check.raises_code("io", f.close, f)
    equal(problem.errno_name, "EBADF")
    contains(problem.message, "something was not written")
    equal(f:close(), true) -- it is closed
    check.raises_code("closed", f.write, f, "x")
    equal(errand.open(at "u"):close(), true)
    local before = descriptors()
    local g = errand.open(at "u", "w")
    equal(errand.close(g), true)
    equal(descriptors(), before)
    do
        local h <close> = errand.open(at "u", "w")
    end
    while descriptors() ~= before do errand.sleep(0.001) end -- it is closed for whoever waits for nothing
    local late = errand.open(at "u", "w")
    local task = errand.spawn(function()
        local ended <close> = setmetatable({}, { __close = function() equal(late:close(), false) end })
        errand.sleep(60)
    end)
    errand.yield()
    errand.cancel(task)
    check.raises_code("cancelled", errand.await, task)
    equal(late:close(), true)
    while descriptors() ~= before do errand.sleep(0.001) end
end)

check.test("what_is_out_on_a_file_that_is_closed_still_ends", function()
    errand.run(function()
        os.remove(at "way")
        equal(errand.command { "mkfifo", at "way" }.status, 0)
        local f = errand.open(at "way", "r+")
        local read = errand.spawn(f.read, f, 5)
        errand.yield()
        local same = errand.open(at "way", "w")
        equal(f:close(), false)
        same:write("hello")
        equal(same:close(), true)
        equal(errand.await(read), "hello")
    end, { deadline = 30 })
end)

test("a_fifo_has_no_position_and_is_read_as_it_comes", function()
    local path = at "fifo"
    os.remove(path)
    equal(errand.command { "mkfifo", path }.status, 0)
    local writer <close> = errand.process {
        "sh", "-c", "exec 3> \"$0\"; printf 'one\\ntwo\\nthr' >&3; printf 'ee\\nlast' >&3", path }
    local f <close> = errand.open(path)
    check.raises_code("unsupported", f.seek, f)
    contains(check.raises(f.lines, f, 3), "no offsets")
    local got = {}
    for line in f:lines() do got[#got + 1] = line end
    equal(table.concat(got, "|"), "one|two|three|last")
    equal(f:read(), nil)
    equal(f:read("a"), "")
end)

test("an_iterator_over_lines_that_tasks_share_gives_each_line_once", function()
    local all = {}
    for i = 1, 30000 do all[i] = ("%05d"):format(i) end
    errand.write_file(at "shared", table.concat(all, "\n"))
    local f <close> = errand.open(at "shared")
    local next_line, tasks, got = f:lines(), {}, {}
    for i = 1, 3 do
        tasks[i] = errand.spawn(function()
            for line in next_line do got[#got + 1] = line end
        end)
    end
    errand.gather(tasks)
    table.sort(got)
    equal(table.concat(got, " ") == table.concat(all, " "), true)
end)

check.test("lines_of_a_pipe_are_waited_for_by_one_task", function()
    errand.run(function()
        os.remove(at "one")
        equal(errand.command { "mkfifo", at "one" }.status, 0)
        local f <close> = errand.open(at "one", "r+")
        local next_line = f:lines()
        local first = errand.spawn(next_line)
        errand.sleep(0.01)
        check.raises_code("busy", next_line)
        f:write("a\nb\n")
        equal(errand.await(first), "a")
        equal(next_line(), "b")
        -- Who is cancelled, or aborted, gives the turn back.
        local second = errand.spawn(next_line)
        errand.sleep(0.01)
        errand.cancel(second)
        check.raises_code("cancelled", errand.await, second)
        local context = errand.context "third"
        context:spawn(next_line)
        errand.sleep(0.01)
        context:abort()
        f:write("c\n") -- that of the second
        f:write("d\n") -- and of the third, whose reads were out
        f:write("e\n")
        equal(#next_line(), 1)
    end, { deadline = 30 })
end)

-- L4
test("names_are_made_moved_copied_and_removed", function()
    errand.make_dir(at "dir", { permissions = tonumber("700", 8) })
    check.raises_code("exists", errand.make_dir, at "dir")
    errand.write_file(at "dir/one", "1")
    equal(errand.copy_file(at "dir/one", at "dir/two"), 1)
    check.raises_code("exists", errand.rename, at "dir/one", at "dir/two", { replace = false })
    errand.rename(at "dir/one", at "dir/two", { replace = true, domain = 7 })
    check.raises_code("not_found", errand.rename, at "dir/one", at "dir/two")
    check.raises_code("exists", errand.remove_dir, at "dir")
    check.raises_code("is_directory", errand.copy_file, at "dir", at "x")
    check.raises(errand.remove_file, at "dir")
    errand.remove_file(at "dir/two", { domain = "dir" })
    check.raises_code("not_found", errand.remove_file, at "dir/two")
    errand.remove_dir(at "dir")
    check.raises_code("not_found", errand.remove_dir, at "dir")
    check.raises_code("inval", errand.rename, "", "x")
    contains(check.raises(errand.rename, "a", "b", { over = true }), "replace")
    contains(check.raises(errand.remove_file, "a", { over = true }), "domain")
    check.raises(errand.rename, "a")
end)

check.test("what_nobody_holds_is_closed", function()
    for _, way in ipairs(ways) do
        pcall(errand.run, function()
            errand.write_file(at "g", "x")
            errand.open(at "g"):read()
            local before = descriptors()
            for _ = 1, 20 do errand.open(at "g") end
            for _ = 1, 20 do local f <close> = errand.open(at "g") end
            pcall(function()
                local f <close> = errand.open(at "g")
                error("left")
            end)
            equal(descriptors(), before)
        end, way)
    end
end)

check.test("a_cancelled_open_and_read_of_a_fifo_end_at_once", function()
    local path = at "silent"
    os.execute("mkfifo " .. path)
    for _, reactor in ipairs { "io_uring", "epoll" } do
        local good, problem = pcall(errand.run, function()
            check.raises_code("timeout", errand.timeout, 0.02, errand.open, path)
            local writer <close> = errand.open(path, "r+")
            local f <close> = errand.open(path)
            check.raises_code("timeout", errand.timeout, 0.02, f.read, f)
            local late = errand.spawn(f.read, f)
            errand.yield()
            errand.cancel(late)
            check.raises_code("cancelled", errand.await, late)
            local both = errand.spawn(writer.read, writer, 4)
            errand.yield()
            equal(writer:write("here"), 4) -- a read that waits does not hold it up
            equal(errand.await(both), "here")
        end, { reactor = reactor, deadline = 30 })
        if not good and problem.code ~= "unsupported" then error(problem, 0) end
    end
end)

check.test("what_failed_moves_nothing", function()
    errand.run(function()
        errand.write_file(at "h", ("x"):rep(1000))
        local f <close> = errand.open(at "h")
        check.raises_code("too_large", f.read, f, "a", nil, 999)
        equal(f:seek(), 0)
        local task = errand.spawn(f.read, f, 10)
        errand.cancel(task) -- before it began
        check.raises(errand.await, task)
        equal(f:seek(), 0)
        equal(#f:read("a", nil, 1000), 1000)
    end)
end)

check.test("files_outlive_their_run_and_serve_the_next", function()
    local f = errand.run(function()
        local made = errand.open(at "i", "w+")
        made:write("abc")
        return made
    end)
    contains(tostring(check.raises_code("misuse", f.read, f)), "errand.run")
    for _, way in ipairs(ways) do
        if not way.reactor then
            errand.run(function() f:seek("set", 1) equal(f:read(), "bc") end, way)
        end
    end
    f:close()
end)

check.test("a_recorded_run_with_files_is_replayed_without_them", function()
    for _, order in ipairs { "arrival", "inline", "paced" } do
        local log = at "log"
        local function body()
            local f <close> = errand.open(at "j", "w+")
            f:write("one\ntwo\n")
            f:seek("set", 4)
            local all = { f:read("a"), f:seek(), f:stat().size }
            for line in f:lines() do all[#all + 1] = line end
            errand.rename(at "j", at "k")
            errand.remove_file(at "k")
            return table.concat(all, "|")
        end
        local before = errand.run(body, { order = order, seed = order ~= "arrival" and 3 or nil,
                                          record = log, record_payloads = true })
        equal(before, "two\n|8|8|one|two")
        os.rename(folder, folder .. "-gone")
        local good, again = pcall(errand.run, body, { replay = folder .. "-gone/log" })
        os.rename(folder .. "-gone", folder)
        equal(good and again, before)
    end
end)

check.test("a_log_without_results_is_refused_before_the_run", function()
    local log, runs = at "log", 0
    local function asks()
        runs = runs + 1
        return errand.stat(folder).kind
    end
    local function sleeps()
        runs = runs + 1
        errand.sleep(0.001)
    end
    errand.run(asks, { order = "inline", seed = 3, record = log })
    contains(check.raises(errand.run, asks, { replay = log }),
             "it was recorded without record_payloads, so it has no results to give: record it again with them")
    equal(runs, 1)
    errand.run(sleeps, { order = "inline", seed = 3, record = log })
    errand.run(sleeps, { replay = log }) -- there is no result
    equal(runs, 3)
end)

check.test("a_run_that_would_be_its_own_peer_is_told_so", function()
    for _, order in ipairs { "inline", "paced" } do
        errand.run(function()
            local listener <close> = errand.listen("127.0.0.1:0")
            local any <close> = errand.listen("0.0.0.0:0")
            local path <close> = errand.listen("unix:@errand-own-" .. errand.now() .. order)
            for _, to in ipairs { listener:address(), path:address(),
                                  (any:address():gsub("0.0.0.0", "127.0.0.1")),
                                  (listener:address():gsub("127.0.0.1", "localhost")) } do
                local problem = check.raises_code("misuse", errand.connect, to)
                contains(problem.message, "talk to another process, or use the order arrival")
            end
            local good, problem = pcall(errand.http.get, "http://" .. listener:address())
            equal(good, false)
            equal(problem.code == "misuse" or problem.code == "unsupported", true)
            local port = listener:address()
            listener:close()
            check.raises_code("connection_failed", errand.connect, port)
        end, { order = order, seed = 2 })
    end
end)

check.test("a_wait_that_never_ends_in_a_seeded_order_names_the_mend", function()
    local good, problem = pcall(errand.run, function()
        local socket <close> = errand.udp("127.0.0.1:0")
        socket:recv()
    end, { seed = 4, watchdog = 0.05 })
    equal(good, false)
    equal(problem.code, "external")
    contains(problem.message, "'recv'")
    contains(problem.message, "talk to another process, or use the order arrival")
end)

os.execute("rm -rf " .. folder)
check.finish()
