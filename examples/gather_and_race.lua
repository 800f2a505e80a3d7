-- SPDX-License-Identifier: MIT
-- gather_and_race: several things at once.   errand run examples/gather_and_race.lua
local errand = require "errand"

local function after(seconds, value)
    errand.sleep(seconds)
    if value == "fails" then
        error("this one fails")
    end
    return value
end

-- gather: the results, in the order of the tasks, whoever ends first.
local a, b, c = errand.gather(errand.spawn(after, 0.03, "one"), errand.spawn(after, 0.01, "two"),
                              errand.spawn(after, 0.02, "three"))
print("gather:       ", a, b, c)

-- The first failure cancels the others, and is raised when they have ended.
local slow = errand.spawn(after, 3600, "never")
local good, problem = pcall(errand.gather, slow, errand.spawn(after, 0.01, "fails"))
print("one fails:    ", good, problem:match("[^:]*$"):sub(2), errand.status(slow))

-- race: the first result; the losers are cancelled and have ended.
local loser = errand.spawn(after, 3600, "slow")
print("race:         ", errand.race(loser, errand.spawn(after, 0.01, "quick")),
      errand.status(loser))
