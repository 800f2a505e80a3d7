-- SPDX-License-Identifier: MIT
-- workload: files, commands, look-ups, timers, cancels, timeouts and random numbers, all at once.
-- It works in the folder "field" below the current one.  What it prints hangs on the seed alone.
local errand = require "errand"
local small = ... == "small"
local rounds = small and 3 or 8
local words = { ash = 1, birch = 2, cedar = 3, elm = 4, fir = 5, oak = 6, pine = 7 }

local function file_work(name)
    local path = "field/" .. name
    for i = 1, rounds do
        errand.write_file(path, name:rep(math.random(1, 50)) .. i)
        errand.append_file(path, os.date("%H:%M:%S"), { domain = name })
        local hash, size = errand.hash_file(path)
        print(name, i, hash, size, os.time(), string.format("%.6f", os.clock()))
        errand.sleep(math.random() / 100)
    end
    return #errand.read_file(path)
end

local function command_work(i)
    local result = errand.command { "sh", "-c", "cat; echo " .. i, input = ("line\n"):rep(errand.random(20)) }
    return result.status, #result.output
end

local function cancel_work(i)
    local task = errand.spawn(errand.command, { "sleep", "20", effect_free = true })
    errand.sleep(errand.random() / 20)
    local answer = errand.cancel(task, "enough " .. i)
    return answer, select(2, pcall(errand.await, task)).code
end

local function timeout_work(i)
    local good, problem = pcall(errand.timeout, 0.0005 * errand.random(8), errand.job, "primes", 3000 + i)
    return good, good and problem or problem.code
end

local tasks, names = {}, {}
for name in pairs(words) do
    names[#names + 1] = name
    tasks[#tasks + 1] = errand.spawn(file_work, name)
end
for i = 1, small and 1 or 4 do
    tasks[#tasks + 1] = errand.spawn(command_work, i)
    tasks[#tasks + 1] = errand.spawn(cancel_work, i)
    tasks[#tasks + 1] = errand.spawn(timeout_work, i)
end
print(table.concat(names, " "))
for i, task in ipairs(tasks) do
    print(i, pcall(errand.await, task))
end
for _, entry in ipairs(errand.list_dir("field")) do
    print(entry.name, entry.kind, errand.stat("field/" .. entry.name).size)
end
local accounts = errand.stats()
for name, count in pairs(accounts) do
    print(name, count)
end
