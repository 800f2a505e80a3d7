-- SPDX-License-Identifier: MIT
-- timeouts: a limit for work that may take too long.   errand run examples/timeouts.lua
local errand = require "errand"

-- In time: the results pass through.
local status = errand.timeout(5, function()
    return errand.command { "true" }.status
end)
print("in time:   status " .. status)

-- Too late: the work is cancelled, and an error with the code "timeout" is raised.  Nobody can
-- tell how far a sleep came, so in seeded orders it may be ended early, too.
local good, problem = pcall(errand.timeout, 0.01, errand.command,
                            { "sleep", "30", effect_free = true })
print("too late:  " .. tostring(good) .. ", " .. problem.code)

-- A limit inside a limit: the outer one ends both.
good, problem = pcall(errand.timeout, 0.01, function()
    return errand.timeout(60, errand.sleep, 3600)
end)
print("nested:    " .. tostring(good) .. ", " .. problem.code)
