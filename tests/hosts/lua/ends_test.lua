-- SPDX-License-Identifier: MIT
-- Goal: a run ends at its deadline, in a stall, and when the state is closed in its middle.
-- Method: endless loops of every form with short deadlines; os.exit in interpreters of their own.
local check = require "check"
local errand = require "errand"
local equal, contains = check.equal, check.contains

local function in_time(f, ...)
    local before = os.time()
    local problem = f(...)
    equal(os.time() - before < 30, true, "ended in time")
    return problem
end

local loops = {
    plain = function() while true do end end,
    behind_pcall = function() while true do pcall(function() while true do end end) end end,
    in_a_coroutine = function()
        while true do coroutine.resume(coroutine.create(function() while true do end end)) end
    end,
    in_a_close_handler = function()
        local guard <close> = setmetatable({}, { __close = function() while true do end end })
        while true do end
    end,
    in_a_child = function()
        errand.await(errand.spawn(function() while true do end end))
    end,
    in_a_handler_of_an_aborted_task = function()
        errand.spawn(function()
            local guard <close> = setmetatable({}, { __close = function() while true do end end })
            errand.sleep(1000)
        end)
        errand.sleep(0.001)
    end,
}
local names = {}
for name in pairs(loops) do
    names[#names + 1] = name
end
table.sort(names)
for _, order in ipairs { "arrival", "inline" } do
    for _, name in ipairs(names) do
        check.test("a_loop_" .. name .. "_is_stopped_at_the_deadline_" .. order, function()
            local options = { order = order, deadline = 0.1, grace = 0.1 }
            in_time(function()
                local ok, problem = pcall(errand.run, loops[name], options)
                if name ~= "in_a_handler_of_an_aborted_task" then
                    equal(ok, false)
                    equal(type(problem) == "table" and problem.code or problem, "deadline")
                end
            end)
            equal(errand.run(function() return "usable" end), "usable")
        end)
    end
    -- More instructions than the watch leaves between two looks.
    check.test("cleanup_that_computes_is_not_cancelled_again_" .. order, function()
        local function count()
            local sum = 0
            for i = 1, 300000 do sum = sum + i % 2 end
            return sum
        end
        local bare, shielded
        check.raises_code("deadline", errand.run, function()
            pcall(function()
                errand.sleep(1000)
            end)
            bare = count()
            errand.shield(function()
                errand.sleep(0.001)
                shielded = count()
            end)
        end, { order = order, deadline = 0.05, grace = 60 })
        equal(bare, 150000)
        equal(shielded, 150000)
    end)
    check.test("a_loop_in_a_shield_is_stopped_after_two_graces_" .. order, function()
        in_time(function()
            check.raises_code("deadline", errand.run, function()
                errand.shield(function()
                    while true do pcall(function() while true do end end) end
                end, 1000)
            end, { order = order, deadline = 0.1, grace = 0.1 })
        end)
    end)
    check.test("a_wait_is_ended_at_the_deadline_after_its_cleanup_" .. order, function()
        local cleaned
        local problem = check.raises_code("deadline", errand.run, function()
            local guard <close> = setmetatable({}, { __close = function()
                errand.shield(function() errand.sleep(0.001) cleaned = true end)
            end })
            errand.sleep(1000)
        end, { order = order, deadline = 0.02 })
        equal(cleaned, true)
        contains(problem.message, "0.02")
    end)
    check.test("a_cleanup_that_does_not_end_is_cut_after_the_grace_" .. order, function()
        for _, limit in ipairs { false, 1e6, math.huge } do
            in_time(check.raises_code, "deadline", errand.run, function()
                errand.shield(function() errand.sleep(8000000) end, limit or nil)
            end, { order = order, deadline = 0.02, grace = 0.02 })
        end
    end)
    check.test("tasks_that_wait_for_each_other_are_a_stall_with_their_lines_" .. order, function()
        local cleaned
        local problem = check.raises_code("stall", errand.run, function()
            local guard <close> = setmetatable({}, { __close = function() cleaned = true end })
            local first, second
            first = errand.spawn(function() errand.await(second) end)
            second = errand.spawn(function() errand.await(first) end)
            errand.gather(first, second)
        end, { order = order })
        contains(problem.message, "  the root task waits in gather at ")
        contains(problem.message, " waits in await for task 2 at ")
        contains(problem.message, "ends_test.lua:")
        equal(cleaned, true)
    end)
end

-- The interpreter that runs this file, with what comes before the script (valgrind is not in arg).
local function interpreter(script)
    local lowest = -1
    while arg[lowest - 1] do
        lowest = lowest - 1
    end
    local command = ("%s -e '%s'"):format(arg[lowest], script:gsub("'", "'\\''"))
    local before = os.time()
    local pipe = io.popen("timeout 60 " .. command .. " 2>&1")
    local output = pipe:read("a")
    local _, how, code = pipe:close()
    equal(os.time() - before < 30, true, "ended in time")
    return how .. " " .. code, output
end

local bodies = {
    asleep = "os.exit(true, true)",
    with_a_file_in_flight = [[
        for i = 1, 20 do errand.spawn(errand.read_file, "/proc/self/maps") end
        errand.yield() errand.yield() os.exit(true, true)]],
    with_a_command_in_flight = [[
        errand.spawn(errand.command, {"sleep", "1000"}) errand.sleep(0.05) os.exit(true, true)]],
    with_tasks_that_wait = [[
        local t = errand.spawn(function() errand.sleep(1000) end)
        errand.spawn(function() errand.gather(t) end) errand.sleep(0.01) os.exit(true, true)]],
    with_open_close_handlers = [[
        errand.spawn(function()
            local guard <close> = setmetatable({}, {__close = function() print("ran") end})
            errand.sleep(1000)
        end)
        errand.sleep(0.01) os.exit(true, true)]],
    in_a_finaliser = [[
        setmetatable({}, {__gc = function() print(pcall(errand.sleep, 1)) end})
        errand.spawn(errand.sleep, 1000) errand.yield() os.exit(true, true)]],
    without_closing = "errand.spawn(errand.sleep, 1000) errand.yield() os.exit(true)",
}
local ends = {}
for name in pairs(bodies) do
    ends[#ends + 1] = name
end
table.sort(ends)
for _, name in ipairs(ends) do
    -- In inline order a command is run to its end at its virtual due.
    local orders = name == "with_a_command_in_flight" and { "arrival" } or { "arrival", "inline" }
    for _, order in ipairs(orders) do
        check.test("os_exit_in_a_task_" .. name .. "_ends_the_process_" .. order, function()
            local how, output = interpreter(([[
                local errand = require "errand"
                errand.run(function() %s end, {order = "%s", seed = 1})
                print("came back")]]):format(bodies[name], order))
            equal(how, "exit 0", output)
            equal(output:find("came back", 1, true), nil)
            equal(output:find("ran\n", 1, true), nil, "no Lua code is entered at the close")
        end)
    end
end

check.test("a_failure_that_nobody_awaited_is_told_by_the_module_too", function()
    local how, output = interpreter([[
        local errand = require "errand"
        print(pcall(errand.run, function()
            errand.spawn(function() error("of a handler", 0) end)
            errand.sleep(100)
        end, {seed = 1, deadline = 1}))]])
    equal(how, "exit 0", output)
    contains(output, "errand: task 2 failed and nobody awaited it: of a handler\n")
end)

-- The interpreter's handler of SIGINT sets a hook; see hosts/lua/drive.c.
local interrupted = {
    asleep = "errand.sleep(100)",
    in_a_command = [[errand.command {"sleep", "100"}]],
    busy = "while true do errand.yield() end",
    in_a_loop = "while true do end",
}
for _, name in ipairs { "asleep", "in_a_command", "busy", "in_a_loop" } do
    check.test("an_interrupt_of_the_stock_interpreter_ends_a_run_" .. name, function()
        local how, output = interpreter(([[
            local errand = require "errand"
            print(pcall(errand.run, function()
                local guard <close> = setmetatable({}, {__close = function()
                    errand.shield(function() errand.sleep(0.01) print("cleaned") end)
                end})
                errand.command {"sh", "-c", "(sleep 0.2; kill -INT $PPID) >&- 2>&- &"}
                %s
            end, {%s}))
            print("after")]]):format(interrupted[name],
                                     name == "in_a_loop" and "deadline = 50" or ""))
        equal(how, "exit 0", output)
        contains(output, "cleaned\nfalse\tinterrupted!\nafter\n")
    end)
end

check.test("an_error_that_nobody_catches_is_printed_with_its_line", function()
    local how, output = interpreter([[
        local errand = require "errand"
        errand.run(function() errand.read_file("/nowhere") end)]])
    equal(how, "exit 1")
    contains(output, ":2: read_file: ")
end)

check.finish()
