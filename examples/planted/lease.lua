-- SPDX-License-Identifier: MIT
-- lease: two servers, and only who has the lease writes.  errand explore examples/planted/lease.lua
-- Planted bug (ordering of depth 3): the old leader checks its lease and writes one step later.  If in
-- between the new leader takes the lease (1) and writes (2), and the old one's write comes (3) before
-- the new one reads back, then the new leader finds a record that is not its own.
-- The word "fixed" runs it without the bug: a write names its term, and the disk refuses old ones.
local errand = require "errand"
local fixed = ... == "fixed"

local function steps(count)
    for _ = 1, count do
        errand.yield() -- where a real server waits for something
    end
end

local lease = { term = 1 }
local disk = { term = 0, by = "nobody" }

local function write(term, by)
    if fixed and term < disk.term then
        return
    end
    disk.term, disk.by = term, by
end

local function old_leader()
    for _ = 1, 6 do
        steps(1)
        if lease.term ~= 1 then
            return
        end
        steps(1)
        write(1, "the old leader")
    end
end

local function new_leader()
    steps(8) -- hears no heartbeat, and asks the others
    lease.term = 2
    steps(12) -- reads what the old one has left
    write(2, "the new leader")
    steps(10) -- tells the others
    assert(disk.by == "the new leader", "the new leader's record was overwritten by " .. disk.by)
end

errand.gather(errand.spawn(old_leader), errand.spawn(new_leader))
