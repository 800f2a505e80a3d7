-- SPDX-License-Identifier: MIT
-- order: an order is sent again when no answer came.   errand explore examples/planted/order.lua
-- Planted bug (retry without identity): the time-out ends the wait, not the work, so an order
-- whose confirmation is late is booked twice.
-- The word "fixed" runs it without the bug: the shop knows an order by its number.
local errand = require "errand"
local fixed = ... == "fixed"

local booked, known = 0, {}

-- The shop does not stop in the middle because a customer has gone.
local function book(number)
    errand.shield(function()
        errand.stat("/")
        if not (fixed and known[number]) then
            known[number] = true
            booked = booked + 1
        end
        errand.stat("/") -- the confirmation is on its way
    end)
    return "confirmed"
end

local function buy(number)
    for _ = 1, 3 do
        local good, answer = pcall(errand.timeout, 0.0032, book, number)
        if good then
            return answer
        end
    end
    return "gave up"
end

buy(17)
assert(booked <= 1, "order 17 was booked " .. booked .. " times")
