-- SPDX-License-Identifier: MIT
-- Goal: scripts choose, name their workloads, and run by policies and tapes.
-- Method: one small script, run again and again with other options.
local check = require "check"
local errand = require "errand"
local test, equal, contains = check.test, check.equal, check.contains

local function body()
    local trail, tasks = {}, {}
    for _, i in ipairs(errand.workload({ 10, 20, 30, 40 }, "tasks")) do
        tasks[#tasks + 1] = errand.spawn(function()
            for _ = 1, 3 do
                trail[#trail + 1] = i
                errand.yield()
            end
            trail[#trail + 1] = i + errand.choose(9)
        end)
    end
    errand.gather(tasks)
    return table.concat(trail, " ")
end

test("choose_answers_one_of_n", function()
    errand.run(function()
        local seen = {}
        for _ = 1, 200 do
            local value = errand.choose(6)
            equal(math.type(value), "integer")
            seen[value] = true
        end
        equal(#seen, 6)
        equal(errand.choose(1), 1)
        contains(check.raises(errand.choose, 0), "1 to choose from")
        contains(check.raises(errand.choose, "x"), "number expected")
    end, { seed = 1 })
end)

test("workload_keeps_everything_without_a_tape", function()
    for _, options in ipairs { { seed = 1 }, { order = "arrival" } } do
        errand.run(function()
            equal(table.concat(errand.workload(4), " "), "1 2 3 4")
            check.raises(errand.workload, math.maxinteger) -- and not built for ever
            local many = setmetatable({}, { __len = function() return 1 << 40 end })
            check.raises(errand.workload, many)
            equal(table.concat(errand.workload({ "a", "b" }, "letters"), " "), "a b")
            equal(#errand.workload(0), 0)
            check.raises(errand.workload, -1)
            check.raises(errand.workload)
        end, options)
    end
end)

test("a_seed_means_the_same_under_every_policy", function()
    for _, policy in ipairs { "shuffle", "fifo", "pick", "pct:3:40", "delay:2:40", "starve:2:40",
        "portfolio" } do
        equal(errand.run(body, { seed = 3, policy = policy }),
            errand.run(body, { seed = 3, policy = policy }), policy)
    end
    local one, other = {}, {}
    for seed = 1, 5 do
        one[seed] = errand.run(body, { seed = seed, policy = "pct:2" })
        other[seed] = errand.run(body, { seed = seed, policy = "pick" })
    end
    assert(table.concat(one, "\n") ~= table.concat(other, "\n"))
end)

test("a_tape_makes_the_run_that_was_saved", function()
    local path, edited = os.tmpname(), os.tmpname()
    local trail = errand.run(body, { seed = 3, save_tape = path })
    equal(errand.run(body, { seed = 4, tape = path }), trail)
    equal(errand.run(body, { tape = path }), trail)
    local file = io.open(path)
    local text = file:read "a"
    file:close()
    contains(text, "errand tape 1\n")
    file = io.open(edited, "w")
    file:write((text:gsub("(workload %x+ 2 2) 0", "%1 1")))
    file:close()
    local less = errand.run(body, { tape = edited })
    assert(not less:find "3%d" and less:find "40" and less:find "10", less)
    os.remove(path)
    os.remove(edited)
end)

test("a_tape_is_saved_however_the_run_ends", function()
    local path = os.tmpname()
    check.raises(errand.run, function() error(errand.choose(5)) end, { save_tape = path })
    local file = io.open(path)
    contains(file:read "a", "application")
    file:close()
    os.remove(path)
end)

test("options_that_make_no_sense_are_named", function()
    local function said(options) return check.raises(errand.run, body, options) end
    contains(said { policy = "best" }, "there is no policy 'best'")
    contains(said { policy = 3 }, "policy must be a string")
    contains(said { tape = "/nowhere" }, "No such file")
    contains(said { save_tape = "/nowhere/at" }, "No such file")
    contains(said { policy = "pick", order = "arrival" }, "seeded order")
    contains(said { polcy = "pick" }, "policy, tape, save_tape")
end)

test("a_run_inside_a_run_leaves_tapes_alone", function()
    local path = os.tmpname()
    errand.run(function()
        check.raises_code("misuse", errand.run, body, { save_tape = path })
    end, { seed = 1 })
    local file = io.open(path)
    equal(file:read "a", "")
    file:close()
    os.remove(path)
end)

check.finish()
