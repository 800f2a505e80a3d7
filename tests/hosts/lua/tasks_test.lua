-- SPDX-License-Identifier: MIT
-- Goal: tasks, what waits for them, cancel, cleanup and ends.
-- Method: most tests run twice: in arrival order, and in inline order, where time is virtual.
local check = require "check"
local errand = require "errand"
local equal, contains = check.equal, check.contains

local function test(name, body)
    check.test(name, function() errand.run(body) end)
    check.test(name .. "_inline", function() errand.run(body, { order = "inline", seed = 42 }) end)
end

test("await_answers_all_results_as_often_as_asked", function()
    local task = errand.spawn(function(...) return select("#", ...), ... end, 1, nil, nil)
    for _ = 1, 2 do
        local answers = table.pack(errand.await(task))
        equal(answers.n, 4)
        equal(answers[1], 3)
        equal(answers[2], 1)
    end
    equal(errand.status(task), "done")
    contains(tostring(task), "done")
end)

test("await_raises_the_very_error_each_time", function()
    local mine = {}
    local task = errand.spawn(function() errand.sleep(0.001) error(mine) end)
    equal(check.raises(errand.await, task), mine)
    equal(check.raises(errand.await, task), mine)
    equal(errand.status(task), "failed")
end)

test("tasks_take_turns", function()
    local seen = {}
    local function worker(name)
        for i = 1, 3 do
            seen[#seen + 1] = name .. i
            errand.yield()
        end
    end
    errand.gather(errand.spawn(worker, "a"), errand.spawn(worker, "b"))
    equal(table.concat(seen, " ") == "a1 a2 a3 b1 b2 b3", false)
    equal(#seen, 6)
end)

test("spawned_tasks_spawn_tasks", function()
    local function count(depth)
        if depth == 0 then
            return 1
        end
        local left, right = errand.spawn(count, depth - 1), errand.spawn(count, depth - 1)
        return errand.await(left) + errand.await(right)
    end
    equal(count(6), 64)
end)

test("sleeps_end_in_the_order_of_their_times", function()
    local seen = {}
    local tasks = {}
    for i, ms in ipairs { 30, 10, 20 } do
        tasks[i] = errand.spawn(function() errand.sleep(ms / 1000) seen[#seen + 1] = ms end)
    end
    errand.gather(tasks)
    equal(table.concat(seen, " "), "10 20 30")
end)

test("gather_answers_one_value_for_each_task", function()
    local function give(value) errand.sleep(errand.random() / 1000) return value, "more" end
    local a, b, c = errand.gather(errand.spawn(give, 1), errand.spawn(give), errand.spawn(give, 3))
    equal(a, 1)
    equal(b, nil)
    equal(c, 3)
    local tasks = {}
    for i = 1, 300 do
        tasks[i] = errand.spawn(give, i)
    end
    local values = errand.gather(tasks)
    for i = 1, 300 do
        equal(values[i], i)
    end
    equal(#errand.gather({}), 0)
    equal(select("#", errand.gather()), 0)
end)

test("gather_cancels_the_others_at_the_first_failure_and_waits_for_their_end", function()
    local ended = {}
    local function long(name)
        local guard <close> = setmetatable({}, { __close = function()
            errand.shield(function() errand.sleep(0.005) end)
            ended[#ended + 1] = name
        end })
        errand.sleep(1000)
    end
    local failing = errand.spawn(function() errand.sleep(0.002) error("first", 0) end)
    local a, b = errand.spawn(long, "a"), errand.spawn(long, "b")
    equal(check.raises(errand.gather, a, failing, b), "first")
    equal(#ended, 2)
    equal(errand.status(a), "cancelled")
    equal(errand.status(b), "cancelled")
end)

test("gather_of_ended_tasks_answers_at_once", function()
    local good = errand.spawn(function() return 1 end)
    local bad = errand.spawn(function() error("bad", 0) end)
    errand.await(good)
    check.raises(errand.await, bad)
    equal(errand.gather(good, good), 1)
    equal(check.raises(errand.gather, good, bad), "bad")
end)

test("race_answers_the_winner_after_the_losers_have_ended", function()
    local loser_ended = false
    local loser = errand.spawn(function()
        local guard <close> = setmetatable({}, { __close = function() loser_ended = true end })
        errand.sleep(1000)
    end)
    local a, b = errand.race(loser, errand.spawn(function() errand.sleep(0.002) return 1, 2 end))
    equal(a, 1)
    equal(b, 2)
    equal(loser_ended, true)
    equal(errand.status(loser), "cancelled")
end)

test("race_raises_when_the_first_to_end_failed", function()
    local loser = errand.spawn(function() errand.sleep(1000) end)
    local winner = errand.spawn(function() error("fast", 0) end)
    equal(check.raises(errand.race, { loser, winner }), "fast")
end)

test("timeout_answers_results_in_time", function()
    local a, b = errand.timeout(1000, function(x) errand.sleep(0.001) return x, 2 end, 1)
    equal(a, 1)
    equal(b, 2)
    equal(check.raises(errand.timeout, 1000, function() error("own", 0) end), "own")
end)

test("timeout_raises_its_code_after_the_cleanup", function()
    local cleaned = false
    local problem = check.raises_code("timeout", errand.timeout, 0.005, function()
        local guard <close> = setmetatable({}, { __close = function() cleaned = true end })
        errand.sleep(1000)
    end)
    contains(problem.message, "0.005")
    equal(cleaned, true)
end)

test("timeout_wins_over_a_function_that_swallows_the_cancel", function()
    check.raises_code("timeout", errand.timeout, 0.005, function()
        pcall(errand.sleep, 1000)
        return "ignored"
    end)
end)

test("a_cancel_in_a_timeout_ends_its_function_first", function()
    local cleaned = false
    local task = errand.spawn(function()
        errand.timeout(1000, function()
            local guard <close> = setmetatable({}, { __close = function()
                errand.shield(function() errand.sleep(0.002) end)
                cleaned = true
            end })
            errand.sleep(1000)
        end)
    end)
    errand.sleep(0.005)
    errand.cancel(task)
    check.raises_code("cancelled", errand.await, task)
    equal(cleaned, true)
end)

-- O40: a cancel is an error at each wait, until the task ends.
test("cancel_is_raised_at_the_wait_and_at_each_one_after_it", function()
    local seen = {}
    local task = errand.spawn(function()
        for i = 1, 3 do
            local ok, problem = pcall(errand.sleep, 1000)
            seen[i] = not ok and problem.code
        end
        local _, problem = pcall(errand.await, errand.self)
        local ok
        ok, problem = pcall(errand.read_file, "/etc/hostname")
        seen[4] = not ok and problem.code
        ok, problem = pcall(errand.spawn, print)
        seen[5] = not ok and problem.code
        ok, problem = pcall(errand.timeout, 1, print)
        seen[6] = not ok and problem.code
        return "whatever"
    end)
    errand.sleep(0.002)
    equal(errand.cancel(task, "no longer needed"), true)
    local problem = check.raises_code("cancelled", errand.await, task)
    contains(problem.message, "no longer needed")
    equal(#seen, 6)
    for i = 1, 6 do
        equal(seen[i], "cancelled", "wait " .. i)
    end
    equal(errand.status(task), "cancelled")
    equal(errand.cancel(task), false)
end)

test("a_task_that_is_cancelled_before_it_began_never_runs", function()
    local ran = false
    local task = errand.spawn(function() ran = true end)
    equal(errand.cancel(task), true)
    check.raises_code("cancelled", errand.await, task)
    equal(ran, false)
end)

test("a_task_can_cancel_itself", function()
    local task = errand.spawn(function()
        errand.cancel(errand.self(), "enough")
        errand.yield()
    end)
    contains(check.raises_code("cancelled", errand.await, task).message, "enough")
end)

test("close_handlers_wait_in_a_shield_while_a_cancel_passes", function()
    local steps = {}
    local task = errand.spawn(function()
        local guard <close> = setmetatable({}, { __close = function(_, problem)
            steps[#steps + 1] = problem.code
            steps[#steps + 1] = select(2, pcall(errand.sleep, 0)).code
            errand.shield(function()
                errand.sleep(0.002)
                local inner = errand.hash_file("/etc/hostname")
                steps[#steps + 1] = #inner
            end)
        end })
        errand.sleep(1000)
    end)
    errand.sleep(0.002)
    errand.cancel(task)
    check.raises_code("cancelled", errand.await, task)
    equal(table.concat(steps, " "), "cancelled cancelled 16")
end)

test("a_shield_keeps_a_cancel_for_its_end", function()
    local inside
    local task = errand.spawn(function()
        inside = errand.shield(function() errand.sleep(0.01) return "kept" end)
        errand.sleep(0)
    end)
    errand.sleep(0.002)
    errand.cancel(task)
    check.raises_code("cancelled", errand.await, task)
    equal(inside, "kept")
    equal(check.raises(errand.shield, function() error("through", 0) end), "through")
end)

test("a_shield_ends_at_its_limit", function()
    local problem
    local task = errand.spawn(function()
        errand.shield(function()
            local ok
            ok, problem = pcall(errand.sleep, 1000)
        end, 0.01)
    end)
    errand.sleep(0.002)
    errand.cancel(task)
    check.raises_code("cancelled", errand.await, task)
    equal(problem.code, "cancelled")
end)

-- Two tasks below the one that is cancelled: each hears it, and its cleanup waits.
local function family(said)
    local function cleans_up(name, below)
        return function()
            local good, problem = pcall(below)
            said[#said + 1] = name .. " hears " .. problem.reason
            errand.shield(function() errand.sleep(0.005) end)
            said[#said + 1] = name .. " cleaned"
        end
    end
    local last = cleans_up("last", function()
        said.begun = true
        errand.sleep(1000)
    end)
    local middle = cleans_up("middle", function() errand.await(errand.spawn(last)) end)
    return function() errand.await(errand.spawn(middle)) end
end
local function until_begun(said)
    while not said.begun do errand.sleep(0.001) end
end
local function heard_by_both(said, reason)
    equal(#said, 4)
    table.sort(said)
    equal(table.concat(said, ", "), ("last cleaned, last hears %s, middle cleaned, middle hears %s")
          :format(reason, reason))
end

-- O40
test("a_cancelled_task_ends_after_the_cleanup_of_all_below_it", function()
    local said = {}
    local task = errand.spawn(family(said))
    until_begun(said)
    errand.cancel(task)
    while #said == 0 do errand.yield() end
    equal(errand.status(task), "waiting")
    check.raises_code("cancelled", errand.await, task)
    equal(errand.status(task), "cancelled")
    heard_by_both(said, "explicit")
end)

test("a_gather_waits_for_the_cleanup_of_all_below", function()
    local said = {}
    equal(check.raises(errand.gather, errand.spawn(family(said)), errand.spawn(function()
        until_begun(said)
        error("first", 0)
    end)), "first")
    heard_by_both(said, "owner")
end)

check.test("a_timeout_and_the_deadline_wait_for_the_cleanup_of_all_below", function()
    local said = {}
    errand.run(function()
        check.raises_code("timeout", errand.timeout, 0.05, family(said))
        heard_by_both(said, "timeout")
    end, { seed = 6 })
    said = {}
    check.raises_code("deadline", errand.run, family(said), { seed = 6, deadline = 0.05 })
    heard_by_both(said, "timeout")
end)

check.test("the_cleanup_of_all_is_the_seeds", function()
    local function once()
        local said = {}
        check.raises_code("deadline", errand.run, family(said), { seed = 5, deadline = 0.05 })
        return table.concat(said, ", ")
    end
    equal(once(), once())
end)

test("a_parents_end_ends_its_children_and_runs_their_close_handlers", function()
    local closed, in_handler
    local child
    errand.await(errand.spawn(function()
        child = errand.spawn(function()
            local guard <close> = setmetatable({}, { __close = function()
                closed = true
                in_handler = check.raises_code("misuse", errand.sleep, 0)
            end })
            errand.sleep(1000)
        end)
        errand.sleep(0.002)
    end))
    check.raises_code("cancelled", errand.await, child)
    equal(closed, true)
    contains(in_handler.message, "aborted")
    equal(errand.status(child), "aborted")
end)

test("handles_may_be_collected_while_their_tasks_run", function()
    local done = 0
    for _ = 1, 50 do
        errand.spawn(function()
            errand.sleep(0.002)
            collectgarbage("step")
            done = done + 1
        end)
    end
    collectgarbage()
    collectgarbage()
    errand.sleep(0.1)
    equal(done, 50)
    equal(errand.stats().tasks, 1)
end)

check.test("a_failure_that_nobody_awaited_fails_the_run", function()
    local mine = {}
    equal(check.raises(errand.run, function()
        errand.spawn(function() error(mine) end)
        errand.sleep(0.005)
        return "fine"
    end), mine)
end)

check.test("handles_outlive_their_run_harmlessly", function()
    local kept, child
    errand.run(function()
        kept = errand.spawn(function() return 7 end)
        child = errand.spawn(function() errand.sleep(1000) end)
        errand.await(kept)
    end)
    collectgarbage()
    contains(tostring(child), "aborted")
    errand.run(function()
        equal(errand.await(kept), 7)
        check.raises_code("cancelled", errand.await, child)
        equal(errand.gather(kept), 7)
        equal(errand.cancel(child), false)
    end)
end)

check.test("the_same_seed_takes_the_same_turns", function()
    local function turns(seed)
        return errand.run(function()
            local seen, tasks = {}, {}
            for i = 1, 12 do
                tasks[i] = errand.spawn(function()
                    errand.hash_file("/etc/hostname")
                    seen[#seen + 1] = i
                    errand.stat("/etc")
                    seen[#seen + 1] = -i
                end)
            end
            errand.gather(tasks)
            return table.concat(seen, " ") .. " at " .. errand.now()
        end, { order = "inline", seed = seed })
    end
    equal(turns(1), turns(1))
    equal(turns(1) == turns(2), false)
end)

check.finish()
