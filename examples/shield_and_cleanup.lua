-- SPDX-License-Identifier: MIT
-- shield_and_cleanup: a cancel is a request, and cleanup may wait: in the task and in all below it.
--     errand run examples/shield_and_cleanup.lua
--     errand run examples/shield_and_cleanup.lua hold        until Ctrl-C: the same cleanup
local errand = require "errand"
local path = os.tmpname()

-- Closed in every case; the handler may await, also while its task is being cancelled.
local function cleanup(line)
    return setmetatable({}, {
        __close = function()
            errand.shield(function()
                errand.sleep(0.01)
                errand.append_file(path, line .. "; ")
            end)
        end,
    })
end

local function help()
    local guard <close> = cleanup "the helper cleaned up"
    errand.sleep(3600)
end

local function work()
    local guard <close> = cleanup "the worker cleaned up"
    errand.append_file(path, "begun; ")
    errand.spawn(help) -- it is cancelled with this task, and has its time, too
    local good, problem = pcall(errand.sleep, 3600)
    print("the await said:", good, problem.code, problem.message)
    -- The cancel is sticky: every further await answers it at once.
    good, problem = pcall(errand.sleep, 1)
    print("and again:     ", good, problem.code)
    error(problem)
end

local task = errand.spawn(work)
errand.sleep(0.05)
if ... ~= "hold" then
    errand.cancel(task, "the shop closes")
end
-- Whoever awaits goes on when both have cleaned up.  After a Ctrl-C this task is cancelled as well:
-- only in a shield may it wait for them, and read what they wrote.
errand.shield(function()
    local good, problem = pcall(errand.await, task)
    print("whoever waits: ", good, problem.code, errand.status(task))
    print("the file has:  ", (errand.read_file(path)))
    os.remove(path)
end, 3600)
