-- SPDX-License-Identifier: MIT
-- freelist: buffers that are taken and given back.  errand explore examples/planted/freelist.lua
-- Planted bug (ordering of depth 3, "ABA"): take reads the first buffer and the one behind it, and sets
-- the list one step later if the first is still the same.  If in between another task takes two
-- buffers (1) and gives the first one back (2), the comparison holds, the list then begins with a
-- buffer that is in use (3), and it is given out again.
-- The word "fixed" runs it without the bug: each change of the list counts up, and that is compared.
local errand = require "errand"
local fixed = ... == "fixed"

local function steps(count)
    for _ = 1, count do
        errand.yield() -- where a real program waits for something
    end
end

local behind = { a = "b", b = "c", c = nil }
local first, changes = "a", 0
local used_by = {}

local function take(who, pause)
    while first do
        local old, seen = first, changes
        local next = behind[old]
        steps(pause)
        if first == old and (not fixed or changes == seen) then
            first, changes = next, changes + 1
            assert(not used_by[old], who .. " got buffer " .. old .. ", which is in use by " ..
                   tostring(used_by[old]))
            used_by[old] = who
            return old
        end
    end
end

local function give(buffer)
    used_by[buffer] = nil
    behind[buffer] = first
    first, changes = buffer, changes + 1
end

local function reader()
    steps(2)
    take("the reader", 1)
    steps(1)
    take("the reader", 1)
end

local function writer()
    steps(4)
    local one = take("the writer", 0)
    steps(4) -- fills it
    take("the writer", 0)
    steps(4) -- sends it
    if one then
        give(one)
    end
    steps(12) -- goes on with the other one
end

errand.gather(errand.spawn(reader), errand.spawn(writer))
