-- SPDX-License-Identifier: MIT
-- bank: transfers between three accounts.          errand explore examples/planted/bank.lua
-- Planted bug (lost update): a transfer reads both balances, asks whether it is allowed, and
-- then writes what it calculated from the balances of before.
-- The word "fixed" runs it without the bug: it reads after the question.
local errand = require "errand"
local fixed = ... == "fixed"

local balance = { anna = 100, berta = 100, carla = 100 }

local function is_allowed()
    errand.stat("/") -- asks another service
    return true
end

local function transfer(from, to, amount)
    local a, b = balance[from], balance[to]
    if not is_allowed() then
        return
    end
    if fixed then
        a, b = balance[from], balance[to]
    end
    balance[from], balance[to] = a - amount, b + amount
end

local function customer(from, to, amount)
    errand.sleep(0.01 * errand.random())
    transfer(from, to, amount)
end

errand.gather(errand.spawn(customer, "anna", "berta", 30), errand.spawn(customer, "berta", "carla", 20),
              errand.spawn(customer, "carla", "anna", 10))
local total = balance.anna + balance.berta + balance.carla
assert(total == 300, "the bank has " .. total .. " instead of 300")
