-- SPDX-License-Identifier: MIT
-- Goal: contexts, select, the stop and the two ways of taking failures.
-- Method: tests run twice: in arrival order, and in inline order, where time is virtual.
local check = require "check"
local errand = require "errand"
local equal, contains = check.equal, check.contains

local function test(name, body)
    check.test(name, function() errand.run(body) end)
    check.test(name .. "_inline", function() errand.run(body, { order = "inline", seed = 42 }) end)
end

local function forever() errand.sleep(1000) end

-- D54, D62
test("a_context_starts_one_task", function()
    local context = errand.context("place")
    local task = context:spawn(function(...) return ... end, 1, 2)
    local a, b = errand.await(task)
    equal(a, 1)
    equal(b, 2)
    local problem = check.raises_code("misuse", context.spawn, context, forever)
    contains(problem.message, "used up")
    check.raises_code("misuse", context.child, context)
    contains(tostring(context), "used up")
end)

-- D55
test("the_end_of_a_task_aborts_its_siblings_children", function()
    local context = errand.context("place")
    local side = context:child("side")
    local task = context:spawn(errand.sleep, 0.001)
    local beside = side:spawn(forever)
    errand.await(task)
    contains(check.raises_code("cancelled", errand.await, beside).message, "aborted")
    equal(errand.status(beside), "aborted")
end)

-- D56, D60, D61
test("below_an_aborted_context_nothing_is_started", function()
    local ran = false
    local context = errand.context()
    local below = context:child("below"):child("deep")
    local task = context:spawn(forever)
    errand.yield()
    context = nil
    errand.cancel(task)
    check.raises_code("cancelled", errand.await, task)
    local late = below:spawn(function() ran = true end)
    equal(errand.status(late), "aborted")
    check.raises_code("cancelled", errand.await, late)
    local other = errand.context("other")
    local third = other:child("third")
    other:abort()
    other:abort()
    equal(errand.status(third:spawn(function() ran = true end)), "aborted")
    errand.yield()
    equal(ran, false)
end)

-- D17
check.test("a_context_that_outlived_its_run_is_refused", function()
    local context, signal
    errand.run(function()
        context = errand.context("old")
        signal = errand.stopped()
    end)
    check.raises_code("misuse", context.spawn, context, forever)
    errand.run(function()
        local problem = check.raises_code("misuse", context.spawn, context, forever)
        contains(problem.message, "has ended")
        check.raises_code("misuse", signal.wait, signal)
        signal:release()
    end)
end)

-- D68
test("a_thread_of_its_own_is_refused_with_the_reason", function()
    local problem = check.raises_code("unsupported", errand.spawn, { dedicated = true }, forever)
    contains(problem.message, "one thread")
    local context = errand.context()
    check.raises_code("unsupported", context.spawn, context, { dedicated = true }, forever)
end)

-- D67
test("select_answers_the_first_and_aborts_the_others", function()
    local closed = 0
    local function slow()
        local guard <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
        errand.sleep(1000)
    end
    local a, b = errand.spawn(slow), errand.spawn(slow)
    local quick = errand.spawn(function() errand.sleep(0.001) return "won", 2 end)
    local index, what, more = errand.select { a, quick, b }
    equal(index, 2)
    equal(what, "won")
    equal(more, 2)
    equal(errand.status(a), "aborted")
    equal(errand.status(b), "aborted")
    equal(closed, 2)
end)

-- D67, D149
test("of_several_that_have_ended_select_takes_the_earliest", function()
    local first = errand.spawn(function() return "first" end)
    local second = errand.spawn(function() return "second" end)
    local third = errand.spawn(forever)
    errand.await(second)
    errand.await(first)
    local index, what = errand.select { third, first, second }
    equal(index, 2)
    equal(what, "first")
    equal(errand.status(third), "aborted")
    check.raises_code("closed", errand.select, {})
end)

test("select_raises_the_winners_error_and_a_cancel_aborts_all", function()
    local failing = errand.spawn(function() errand.sleep(0.001) error("mine", 0) end)
    local waiting = errand.spawn(forever)
    equal(check.raises(errand.select, { waiting, failing }), "mine")
    local a = errand.spawn(forever)
    local selecting = errand.spawn(function() errand.select { a } end)
    errand.yield()
    errand.yield()
    errand.cancel(selecting)
    check.raises_code("cancelled", errand.await, selecting)
    equal(errand.status(a), "aborted")
    check.raises_code("misuse", errand.select, { errand.self() })
end)

-- D76, D77, D78, D80, D81
test("stop_waits_for_all_who_hear_it", function()
    local done, values = 0, {}
    local function hearer(ms)
        local signal <close> = errand.stopped()
        local value = signal:wait()
        values[#values + 1] = value
        errand.sleep(ms / 1000)
        done = done + 1
    end
    for _, ms in ipairs { 10, 20, 30 } do
        errand.spawn(hearer, ms)
    end
    local other = errand.spawn(function() errand.sleep(0.001) errand.stop(6) return done end)
    errand.yield()
    errand.yield()
    errand.stop(5)
    equal(done, 3)
    equal(errand.await(other), 3)
    for i = 1, 3 do
        equal(values[i], 5)
    end
    equal(errand.stopped():wait(), 5)
    errand.stop(7)
end)

-- D79, D83
test("stop_has_a_limit", function()
    local holder = errand.spawn(function()
        local signal = errand.stopped()
        signal:wait()
        errand.sleep(1000)
    end)
    errand.yield()
    errand.yield()
    check.raises_code("timeout", errand.stop, 1, 0.005)
    equal(errand.status(holder), "waiting")
    errand.cancel(holder) -- its end releases it
    errand.stop(1)
end)

-- D82
check.test("a_run_ends_although_a_task_waits_for_the_stop", function()
    errand.run(function()
        errand.spawn(function() errand.stopped():wait() end)
        errand.yield()
    end)
end)

-- D70, D72
for _, order in ipairs { "arrival", "inline" } do
    check.test("without_catch_the_first_failure_ends_the_run_" .. order, function()
        local mine, cleaned, resumed = { code = "mine" }, false, false
        local problem = check.raises(errand.run, function()
            local guard <close> = setmetatable({}, { __close = function() cleaned = true end })
            local task = errand.spawn(function() errand.sleep(0.001) error(mine) end)
            errand.spawn(function() pcall(errand.await, task) error("later") end)
            errand.sleep(1000)
            resumed = true
        end, { order = order, seed = 3, catch = false })
        equal(problem, mine)
        equal(cleaned, true)
        equal(resumed, false)
        equal(check.raises(errand.run, function() error(mine) end, { catch = false }), mine)
        equal(errand.run(function() return 4 end, { catch = false }), 4)
    end)

    -- D71
    check.test("with_catch_others_go_on_" .. order, function()
        errand.run(function()
            local task = errand.spawn(function() error("mine", 0) end)
            errand.sleep(0.001)
            equal(check.raises(errand.await, task), "mine")
        end, { order = order, seed = 3, catch = true })
    end)
end

check.test("catch_is_true_or_false", function()
    contains(check.raises(errand.run, forever, { catch = 1 }), "catch")
end)

check.finish()
