-- SPDX-License-Identifier: MIT
-- shield_and_cleanup: a cancel is a request, and cleanup may wait.
--     errand run examples/shield_and_cleanup.lua
local errand = require "errand"
local path = os.tmpname()

local function work()
    -- Closed in every case; a handler may await, also while the task is being cancelled.
    local file <close> = setmetatable({}, {
        __close = function()
            errand.shield(function()
                errand.append_file(path, "cleaned up\n")
            end)
        end,
    })
    errand.append_file(path, "begun\n")
    local good, problem = pcall(errand.sleep, 3600)
    print("the await said:", good, problem.code, problem.message)
    -- The cancel is sticky: every further await answers it at once.
    good, problem = pcall(errand.sleep, 1)
    print("and again:     ", good, problem.code)
    error(problem)
end

local task = errand.spawn(work)
errand.sleep(0.01)
errand.cancel(task, "the shop closes")
local good, problem = pcall(errand.await, task)
print("whoever waits: ", good, problem.code, errand.status(task))
print("the file has:  ", (errand.read_file(path):gsub("\n", "; ")))
os.remove(path)
