-- SPDX-License-Identifier: MIT
-- backup: a table is copied while something moves in it.  errand explore examples/planted/backup.lua
-- Planted bug (ordering of depth 3): the backup trusts a count of the moves that began.  If a move has
-- begun (1) when the backup starts, puts its book after the first shelf was copied (2), and has
-- taken it away before the second shelf is copied (3), the book is in neither copy, and the counts
-- are equal.
-- The word "fixed" runs it without the bug: the end of a move counts too.
local errand = require "errand"
local fixed = ... == "fixed"

local function steps(count)
    for _ = 1, count do
        errand.yield() -- where a real program waits for something
    end
end

local shelves = { {}, { atlas = true } }
local moves = 0

local function move(book, from, to)
    moves = moves + 1
    steps(16) -- finds a place
    shelves[to][book] = true
    steps(14) -- writes the card
    shelves[from][book] = nil
    if fixed then
        moves = moves + 1
    end
end

local function copy(shelf)
    local copied = {}
    for book in pairs(shelf) do
        copied[book] = true
    end
    return copied
end

local function backup()
    repeat
        local before = moves
        local one = copy(shelves[1])
        steps(3)
        local two = copy(shelves[2])
        if moves == before then
            assert(one.atlas or two.atlas, "the atlas is on no shelf of the backup")
            return
        end
    until false
end

errand.gather(errand.spawn(function() steps(2) move("atlas", 2, 1) end),
              errand.spawn(function() steps(3) backup() end))
