-- SPDX-License-Identifier: MIT
-- Goal: Lua's own functions answer tasks of seeded runs from virtual time and the task's stream, and
-- everybody else as before.
-- Method: both seeded orders; arrival order and the outside of runs beside them.
local check = require "check"
local errand = require "errand"
local equal, contains = check.equal, check.contains

local function test(name, body)
    for _, order in ipairs { "inline", "paced" } do
        check.test(name .. "_" .. order, function()
            errand.run(body, { order = order, seed = 42 })
        end)
    end
end

-- D20, D141: a clock that no virtual state decides would be seen here.
test("os_tells_virtual_time", function()
    equal(os.time(), 0)
    equal(os.clock(), 0.0)
    errand.sleep(86400)
    equal(os.time(), 86400)
    equal(os.clock(), 86400.0)
    equal(os.date("%Y-%m-%d %H:%M:%S"), "1970-01-02 00:00:00")
    equal(os.date("!%d"), "02")
    equal(os.date("*t").day, 2)
    contains(os.date(), "1970")
    equal(os.date("!%Y", 86400 * 366), "1971")
    equal(os.time { year = 2000, month = 1, day = 1 } > 900000000, true)
end)

-- D50, D52
test("math_random_is_the_tasks_stream", function()
    local function draw()
        local all = {}
        for i = 1, 8 do
            all[i] = math.random(1000)
        end
        return table.concat(all, " ")
    end
    local first = errand.await(errand.spawn(draw))
    math.randomseed(7)


    local again = errand.await(errand.spawn(draw))
    equal(first == again, false) -- two tasks, two streams
    local x = math.random()
    equal(x >= 0 and x < 1, true)
    contains(check.raises(math.random, 2, 1), "interval is empty")
end)

check.test("math_random_is_the_same_for_one_seed_and_another_for_two", function()
    local function draw()
        math.randomseed(os.time())
        return math.random(0)
    end
    local function with(seed, order)
        return errand.run(draw, { order = order, seed = seed })
    end
    equal(with(1, "inline"), with(1, "paced"))
    equal(with(1, "inline") == with(2, "inline"), false)
end)

local function keys_of(t)
    local keys = {}
    for key in pairs(t) do
        keys[#keys + 1] = tostring(key)
    end
    return table.concat(keys, " ")
end

test("pairs_goes_by_the_keys_and_not_by_where_they_lie", function()
    local t = { [true] = 1, [false] = 2, [2.5] = 3, [-1] = 4, b = 5, a = 6, [1] = 7, ["a\0"] = 8, A = 9 }
    equal(keys_of(t), "-1 1 2.5 A a a\0 b false true")
    local names = {}
    for i = 1, 300 do
        names["n" .. i] = true
    end
    local before
    for name in pairs(names) do
        equal(before == nil or before < name, true)
        before = name
    end
    equal(keys_of { 10, 20, 30 }, "1 2 3")
    equal(keys_of {}, "")
end)

test("pairs_goes_through_tasks_as_they_were_spawned", function()
    local tasks, list = {}, {}
    for i = 1, 20 do
        list[i] = errand.spawn(function() end)
    end
    for i = 20, 1, -1 do
        tasks[list[i]] = i
    end
    local at = 0
    for _, i in pairs(tasks) do
        at = at + 1
        equal(i, at)
    end
    equal(at, 20)
end)

test("pairs_bears_what_is_taken_out_and_what_is_changed", function()
    local t = { a = 1, b = 2, c = 3, d = 4 }
    local seen = {}
    for key, value in pairs(t) do
        seen[#seen + 1] = key .. value
        t[key] = nil
        t.c = nil
        if t.d then
            t.d = 5
        end
    end
    equal(table.concat(seen, " "), "a1 b2 d5")
    equal(next(t), nil)
end)

test("pairs_heeds_the_metamethod_and_checks_its_argument", function()
    local t = setmetatable({}, { __pairs = function() return function(_, i) return not i and 1 or nil end, nil, nil end })
    equal(keys_of(t), "1")
    contains(check.raises(pairs), "value expected")
    contains(check.raises(function() for _ in pairs(5) do end end), "table expected")
end)

test("pairs_over_addresses_is_noted", function()
    local before = {}
    for i = 1, 3 do
        before[{}] = i
    end
    local count = 0
    for _ in pairs(before) do
        count = count + 1
    end
    equal(count, 3)
end)

check.test("arrival_order_has_the_real_ones", function()
    errand.run(function()
        equal(os.time() > 1000000000, true)
        equal(os.getenv("PATH") ~= nil, true)
        math.randomseed(5)
        local a = math.random(1000000)
        math.randomseed(5)
        equal(math.random(1000000), a)
        equal(keys_of { 1, 2 }, "1 2")
    end)
end)

check.test("outside_of_runs_too", function()
    equal(os.time() > 1000000000, true)
    contains(os.date("!%Y"), "20")
    equal(keys_of { 1, 2 }, "1 2")
    math.randomseed(5)
    local a = math.random(1000000)
    math.randomseed(5)
    equal(math.random(1000000), a)
end)

check.finish()
