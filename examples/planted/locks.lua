-- SPDX-License-Identifier: MIT
-- locks: two clerks each lock two accounts.       errand explore examples/planted/locks.lua
-- Planted bug (deadlock): a clerk locks the account that pays first.  When the clerks pay each
-- other's way at the same time each holds one lock and waits for the other.
-- The word "fixed" runs it without the bug: locks are taken in the order of the names.
local errand = require "errand"
local fixed = ... == "fixed"

-- An account is locked by a task until that task ends.
local holder = {}

local function lock(account)
    while holder[account] and errand.status(holder[account]) ~= "done" do
        errand.await(holder[account])
    end
    holder[account] = errand.self()
end

local function pay(from, to)
    errand.sleep(0.01 * errand.random())
    local first, second = from, to
    if fixed and second < first then
        first, second = second, first
    end
    lock(first)
    errand.stat("/") -- writes the first half into the journal
    lock(second)
    errand.stat("/")
end

errand.gather(errand.spawn(pay, "rent", "savings"), errand.spawn(pay, "savings", "rent"))
