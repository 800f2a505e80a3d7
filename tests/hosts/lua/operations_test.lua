-- SPDX-License-Identifier: MIT
-- Goal: the verbs for files, names and child processes do what they say, and can be ended.
-- Method: real files in a folder of its own under TMPDIR, real processes, both orders.
local check = require "check"
local errand = require "errand"
local equal, contains = check.equal, check.contains

local folder = os.tmpname()
os.remove(folder)
errand.run(function() equal(errand.command { "mkdir", folder }.status, 0) end)

local function test(name, body)
    check.test(name, function() errand.run(body) end)
    check.test(name .. "_inline", function() errand.run(body, { order = "inline", seed = 9 }) end)
end

test("files_are_written_read_and_continued", function()
    local path = folder .. "/notes"
    equal(errand.write_file(path, "one\0two"), 7)
    equal(errand.read_file(path), "one\0two")
    equal(errand.append_file(path, "!"), 1)
    equal(errand.read_file(path), "one\0two!")
    check.raises_code("too_large", errand.read_file, path, 3)
    equal(errand.write_file(path, ""), 0)
    equal(errand.read_file(path), "")
end)

test("directories_are_listed_in_order", function()
    errand.write_file(folder .. "/b", "")
    errand.write_file(folder .. "/a", "")
    local names = {}
    for _, entry in ipairs(errand.list_dir(folder)) do
        names[#names + 1] = entry.name .. ":" .. entry.kind
    end
    contains(table.concat(names, " "), "a:regular b:regular")
    check.raises_code("not_directory", errand.list_dir, folder .. "/a")
end)

test("stat_tells_kind_size_mode_and_time", function()
    errand.write_file(folder .. "/sized", "12345")
    local file = errand.stat(folder .. "/sized")
    equal(file.kind, "regular")
    equal(file.size, 5)
    equal(math.type(file.mode), "integer")
    equal(file.mtime > 1700000000, true) -- real; a seeded run's os.time() is not
    equal(errand.stat(folder).kind, "directory")
    errand.command { "ln", "-sf", "sized", folder .. "/link" }
    equal(errand.stat(folder .. "/link").kind, "regular")
    equal(errand.stat(folder .. "/link", false).kind, "link")
end)

test("hashes_hang_on_contents_alone", function()
    errand.write_file(folder .. "/x", "same")
    errand.write_file(folder .. "/y", "same")
    errand.write_file(folder .. "/z", "other")
    local x, size = errand.hash_file(folder .. "/x")
    equal(size, 4)
    equal(#x, 16)
    equal(x, (errand.hash_file(folder .. "/y")))
    equal(x == errand.hash_file(folder .. "/z"), false)
end)

test("localhost_has_an_address", function()
    local addresses = errand.resolve("localhost", "80")
    equal(#addresses >= 1, true)
    equal(addresses[1].port, 80)
    contains(addresses[1].address, addresses[1].family == 4 and "127." or "::1")
end)

test("commands_answer_output_errors_and_status", function()
    local result = errand.command { "sh", "-c", "cat; echo bad >&2; exit 3", input = "in" }
    equal(result.output, "in")
    equal(result.errors, "bad\n")
    equal(result.status, 3)
    equal(result.signal, nil)
    result = errand.command { argv = { "sh", "-c", "kill -9 $$" } }
    equal(result.signal, 9)
    equal(result.status, nil)
    result = errand.command { "/bin/pwd", cwd = "/usr" }
    equal(result.output, "/usr\n")
    result = errand.command { "/usr/bin/env", env = { B = 2, A = "one" } }
    equal(result.output, "A=one\nB=2\n")
    check.raises_code("not_found", errand.command, { "no-such-command-anywhere" })
    check.raises_code("output", errand.command, { "yes", output_max = 1000 })
end)

check.test("a_command_is_ended_by_cancel_and_by_timeout", function()
    errand.run(function()
        local before = errand.now()
        check.raises_code("timeout", errand.timeout, 0.05, errand.command, { "sleep", "1000" })
        local task = errand.spawn(errand.command, { "sleep", "1000" })
        errand.sleep(0.02)
        errand.cancel(task)
        check.raises_code("cancelled", errand.await, task)
        equal(errand.now() - before < 60, true)
    end)
end)

check.test("many_operations_at_once_each_complete_once", function()
    errand.run(function()
        local tasks = {}
        for i = 1, 200 do
            tasks[i] = errand.spawn(function()
                local path = folder .. "/many" .. i
                errand.write_file(path, ("x"):rep(i))
                return #errand.read_file(path)
            end)
        end
        local sizes = errand.gather(tasks)
        for i = 1, 200 do
            equal(sizes[i], i)
        end
        local stats = errand.stats()
        equal(stats.accepted, 400)
        equal(stats.completed, 400)
        equal(stats.resumed, 400)
    end, { workers = 3 })
end)

errand.run(function() errand.command { "rm", "-r", folder } end)
check.finish()
