-- SPDX-License-Identifier: MIT
-- Goal: the module loads into a stock interpreter, runs functions and refuses misuse by name.
-- Method: this file is run by Debian's lua5.4, which finds errand.so by LUA_CPATH.
local check = require "check"
local errand = require "errand"
local test, equal, contains = check.test, check.equal, check.contains

test("stock_interpreter_loads_the_module", function()
    equal(type(errand.run), "function")
    contains(errand.version, ".")
    equal(require "errand", errand)
end)

test("run_answers_the_results_of_its_function", function()
    local count = select("#", errand.run(function() end))
    equal(count, 0)
    local a, b, c = errand.run(function() return 1, nil, "three" end)
    equal(a, 1)
    equal(b, nil)
    equal(c, "three")
end)

test("run_raises_the_very_error_of_its_function", function()
    local mine = {}
    equal(check.raises(errand.run, function() error(mine) end), mine)
    local text = check.raises(errand.run, function() error("a word") end)
    contains(text, "module_test.lua:")
    contains(text, "a word")
end)

test("every_verb_outside_a_run_names_errand_run", function()
    local count = 0
    for name, verb in pairs(errand) do
        if type(verb) == "function" and name ~= "run" and name ~= "close" then
            local problem = check.raises_code("misuse", verb, 1, 2)
            contains(problem.message, "errand.run")
            equal(problem.operation, name)
            contains(problem, "module_test.lua:" == "" and "" or name .. ": ")
            count = count + 1
        end
    end
    equal(count, 43, "number of verbs")
end)

test("every_function_names_itself_when_its_arguments_are_missing", function()
    local count = 0
    local function look(part, path)
        for name, value in pairs(part) do
            if type(value) == "table" then
                look(value, path .. name .. ".")
            elseif type(value) == "function" and name ~= "stop" then -- which waits for the run's end
                for _, words in ipairs { {}, { print }, { {} } } do
                    local ended, problem = pcall(value, table.unpack(words))
                    if not ended then
                        contains(problem, name)
                        count = count + 1
                    end
                end
            end
        end
    end
    errand.run(function() look(errand, "errand.") end)
    equal(count > 60, true, count)
end)

test("what_is_no_object_of_a_class_is_refused_by_all_that_the_class_has", function()
    local classes = 0
    for class, has in pairs(debug.getregistry()) do
        if type(class) == "string" and class:find("^errand%.") and class ~= "errand.error" then
            classes = classes + 1
            local methods = type(has.__index) == "table" and has.__index or {}
            for _, from in ipairs { has, methods } do
                for name, value in pairs(from) do
                    for _, given in ipairs { {}, { 1 }, { {} }, { io.stdout } } do
                        if type(value) == "function" and pcall(value, table.unpack(given)) then
                            error(class .. "." .. name .. " took what is no object of it")
                        end
                    end
                end
            end
        end
    end
    equal(classes > 10, true, classes)
end)

test("run_inside_a_run_is_refused_and_the_outer_goes_on", function()
    local problem, after = errand.run(function()
        local problem = check.raises_code("misuse", errand.run, function() end)
        errand.sleep(0.001)
        return problem, "on"
    end)
    contains(problem.message, "errand.spawn")
    equal(after, "on")
end)

test("runs_follow_each_other", function()
    for i = 1, 20 do
        equal(errand.run(function() errand.yield() return i end), i)
    end
end)

test("options_with_a_slip_are_refused", function()
    local f = function() end
    contains(check.raises(errand.run, f, { sead = 1 }), "sead")
    contains(check.raises(errand.run, f, { order = "pased" }), "order")
    contains(check.raises(errand.run, f, { watchdog = 0 }), "watchdog")
    contains(check.raises(errand.run, f, { seed = 1.5 }), "integer")
    contains(check.raises(errand.run, f, { workers = 0 }), "workers")
    contains(check.raises(errand.run, f, { deadline = -1 }), "deadline")
    contains(check.raises(errand.run, f, { 1 }), "names")
    contains(check.raises(errand.run, 12), "function expected")
end)

test("a_seed_alone_asks_for_virtual_time", function()
    local before = os.time()
    equal(errand.run(function() errand.sleep(3600) return errand.now() end, { seed = 1 }), 3600.0)
    equal(os.time() - before < 60, true, "no real hour passed")
end)

test("random_numbers_hang_on_the_seed_and_keep_their_bounds", function()
    local function draw(seed, order)
        return errand.run(function()
            local list, seen = {}, 0
            for i = 1, 200 do
                local n, f = errand.random(-3, 4), errand.random()
                assert(math.type(n) == "integer" and n >= -3 and n <= 4)
                assert(f >= 0 and f < 1)
                list[i] = n .. ":" .. errand.random(0)
                seen = seen | errand.random(0)
            end
            assert(errand.random(1) == 1)
            equal(seen, -1, "all bits of random(0)")
            assert(math.type(errand.random(math.mininteger, math.maxinteger)) == "integer")
            return table.concat(list, " ")
        end, { seed = seed, order = order })
    end
    equal(draw(7), draw(7))
    equal(draw(7) == draw(8), false)
    equal(draw(7, "arrival"), draw(7, "arrival"))
    for n = -3, 4 do
        contains(" " .. draw(7), " " .. n .. ":")
    end
    contains(check.raises(errand.run, function() errand.random(2, 1) end), "empty")
end)

test("errors_say_where_and_what", function()
    errand.run(function()
        local problem = check.raises_code("not_found", errand.read_file, "/nowhere/at/all")
        equal(problem.operation, "read_file")
        equal(problem.errno_name, "ENOENT")
        contains(problem.message, "/nowhere/at/all")
        local ok, other = pcall(function() errand.read_file("/nowhere") end)
        contains(other, "module_test.lua:")
        contains(other, "read_file: ")
    end)
end)

test("waits_inside_a_foreign_coroutine_name_the_mend", function()
    errand.run(function()
        local ok, problem = coroutine.resume(coroutine.create(function() errand.sleep(0) end))
        equal(ok, false)
        contains(problem.message, "errand.spawn")
        -- What does not wait works there.
        equal(coroutine.wrap(function() return errand.now() end)() >= 0, true)
        local task = coroutine.wrap(function() return errand.spawn(function() return 5 end) end)()
        equal(errand.await(task), 5)
        -- And the task's own coroutines are its own.
        local next_number = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
        equal(next_number() + next_number(), 3)
    end)
end)

test("waits_below_a_c_function_name_the_mend", function()
    errand.run(function()
        local ok, problem = pcall(table.sort, { 2, 1 }, function() errand.sleep(0) end)
        equal(ok, false)
        contains(problem.message, "table.sort")
        ok, problem = pcall(string.gsub, "x", "x", function() errand.await(errand.self()) end)
        equal(ok, false)
        contains(problem.message, "string.gsub")
    end)
end)

test("coroutine_yield_in_a_task_names_the_mend", function()
    local text = check.raises(errand.run, function() coroutine.yield(1) end)
    contains(text, "errand.yield")
end)

test("wrong_arguments_are_named", function()
    errand.run(function()
        contains(check.raises(errand.sleep, "soon"), "number expected")
        contains(check.raises(errand.sleep), "number expected")
        contains(check.raises(errand.sleep, -1), "negative")
        contains(check.raises(errand.sleep, 0 / 0), "NaN")
        contains(check.raises(errand.timeout, 0 / 0, print), "NaN")
        contains(check.raises(errand.shield, print, 0 / 0), "NaN")
        contains(check.raises(errand.sleep, math.huge), "too many seconds")
        contains(check.raises(errand.spawn, 1), "function expected")
        contains(check.raises(errand.await, {}), "errand.task expected")
        contains(check.raises(errand.spawn, {}), "function expected")
        contains(check.raises(errand.gather, 1), "argument 1 is a number, not a task")
        contains(check.raises(errand.gather, 1), "errand.spawn")
        contains(check.raises(errand.race, errand.self(), {}), "a task cannot wait for itself")
        contains(check.raises(errand.race, { print }), "element 1 is a function, not a task")
        contains(check.raises(errand.gather, errand.spawn(print, 1), nil), "argument 2 is nil")
        contains(check.raises(errand.race), "at least one task")
        contains(check.raises(errand.race, {}), "at least one task")
        contains(check.raises(errand.timeout, 1), "function expected")
        local _, problem = pcall(function() errand.timeout(1, 5) end)
        contains(problem, "module_test.lua:")
        contains(problem, "#2 ")
        contains(problem, "function expected, got number")
        _, problem = pcall(function() errand.shield(1) end)
        contains(problem, "module_test.lua:")
        contains(problem, "function expected, got number")
        contains(check.raises(errand.read_file, "a\0b"), "zero byte")
        contains(check.raises(errand.command, {}), "argv is empty")
        contains(check.raises(errand.command, { "true", shell = true }), "shell")
        contains(check.raises(errand.command, { {} }), "string")
        contains(check.raises(errand.command, { argv = { "true" }, "x" }), "given twice")
        contains(check.raises(errand.command, { "true", [2.5] = 1 }), "a key is a number")
        contains(check.raises(errand.command, { "true", [true] = 1 }), "a key is a boolean")
        contains(check.raises(errand.command, { "true", [9] = "x" }), "9 stands outside")
        contains(check.raises(errand.command, { "true", env = { ["A=B"] = 1 } }), "A=B")
        contains(check.raises(errand.command, { "true", env = { [""] = 1 } }), "not empty")
        contains(check.raises_code("unknown_job", errand.job, "nothing"), "nothing")
        check.raises_code("misuse", errand.await, errand.self())
        check.raises_code("misuse", errand.gather, errand.self())
    end)
end)

test("empty_names_are_refused_with_a_code_and_the_mend", function()
    errand.run(function()
        for _, verb in ipairs { "read_file", "write_file", "append_file", "list_dir", "stat",
                                "hash_file" } do
            local problem = check.raises_code("inval", errand[verb], "", "")
            contains(problem, verb .. ": the path is empty: give one")
        end
        contains(check.raises_code("inval", errand.resolve, ""), "the host is empty")
        contains(check.raises_code("inval", errand.resolve, "localhost", ""), "service")
        contains(check.raises_code("inval", errand.command, { "" }), "name is empty")
        contains(check.raises_code("inval", errand.command, { "true", cwd = "" }), "cwd is empty")
    end)
end)

test("what_can_be_called_may_be_run_spawned_limited_and_shielded", function()
    local callable = setmetatable({}, { __call = function(_, ...) return "called", ... end })
    equal(errand.run(callable), "called")
    errand.run(function()
        equal(select(2, errand.await(errand.spawn(callable, 1))), 1)
        equal(select(2, errand.timeout(1, callable, 2)), 2)
        equal(errand.shield(callable), "called")
    end)
end)

test("stats_count_what_was_done", function()
    errand.run(function()
        errand.hash_file("/etc/hostname")
        pcall(errand.read_file, "/nowhere")
        local stats = errand.stats()
        equal(stats.accepted, 2)
        equal(stats.completed, 1)
        equal(stats.failed, 1)
        equal(stats.drained, 2)
        equal(stats.tasks, 1)
    end)
end)

check.finish()
