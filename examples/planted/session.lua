-- SPDX-License-Identifier: MIT
-- session: a server keeps sessions in numbered slots.  errand explore examples/planted/session.lua
-- Planted bug (ordering of depth 3): a request looks its slot up and uses it one step later.  If in
-- between the slot is freed (1) and a log-in has taken it (2), and the request writes while that
-- session lives (3), it writes into a stranger's cart.
-- The word "fixed" runs it without the bug: the request compares the owner when it writes.
local errand = require "errand"
local fixed = ... == "fixed"

local function steps(count)
    for _ = 1, count do
        errand.yield() -- where a real server waits for something
    end
end

local slot = { owner = "anna", cart = {} }

local function request(number)
    local found = slot
    if found.owner ~= "anna" then
        return
    end
    steps(1)
    if fixed and found.owner ~= "anna" then
        return
    end
    found.cart[#found.cart + 1] = "Anna's book " .. number
end

local function anna()
    for number = 1, 5 do
        steps(1)
        request(number)
    end
end

local function reaper()
    steps(5) -- looks through all sessions, and finds Anna's too old
    slot.owner = nil
end

local function log_in(free)
    errand.await(free)
    steps(12) -- checks the password
    slot.owner, slot.cart = "berta", {}
    steps(10) -- Berta looks at the shelves
    assert(#slot.cart == 0, "Berta's cart is not empty: " .. tostring(slot.cart[1]) .. " is in it")
end

errand.gather(errand.spawn(anna), errand.spawn(log_in, errand.spawn(reaper)))
