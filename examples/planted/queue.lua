-- SPDX-License-Identifier: MIT
-- queue: a producer wakes a consumer that sleeps.  errand explore examples/planted/queue.lua
-- Planted bug (lost wake): the consumer sees an empty queue, writes a line into its log and only
-- then goes to bed.  An item that is put while it writes wakes nobody.
-- The word "fixed" runs it without the bug: it looks at the queue again when it is in bed.
local errand = require "errand"
local fixed = ... == "fixed"

local items, bed = {}, nil
local ITEMS = 5

local function put(item)
    items[#items + 1] = item
    if bed then
        errand.cancel(bed, "an item is there")
    end
end

-- Goes to bed until somebody cancels that, an hour at most.
local function sleep_until_woken()
    bed = errand.spawn(errand.sleep, 3600)
    if fixed and #items > 0 then
        errand.cancel(bed)
    end
    local overslept = pcall(errand.await, bed)
    bed = nil
    assert(not overslept, "the consumer slept for an hour beside a full queue")
end

local function consumer()
    for _ = 1, ITEMS do
        if #items == 0 then
            errand.stat("/") -- "the queue is empty", into the log
            sleep_until_woken()
        end
        table.remove(items, 1)
    end
end

local function producer()
    for i = 1, ITEMS do
        errand.sleep(0.001 + 0.01 * errand.random())
        put(i)
    end
end

errand.gather(errand.spawn(consumer), errand.spawn(producer))
