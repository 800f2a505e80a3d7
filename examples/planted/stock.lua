-- SPDX-License-Identifier: MIT
-- stock: five clerks work off 500 orders.      errand explore --minimise examples/planted/stock.lua
-- Planted bug (three of 500 operations): a recount counts what lies on the shelf, and what is
-- reserved does not lie there.  When that reservation is cancelled later, an article is missing.
-- So it takes reserve, recount and cancel of one article, in this order, and nothing else.
-- The word "fixed" runs it without the bug: the recount adds what is reserved.
local errand = require "errand"
local fixed = ... == "fixed"

local ARTICLES, CLERKS = 300, 5
local kinds = { "look", "reserve", "recount", "cancel", "price" }

-- All orders are made first; the workload says which of them stay in this run.
local orders = {}
for i = 1, 500 do
    orders[i] = { kind = kinds[errand.random(#kinds)], article = errand.random(ARTICLES) }
end
orders = errand.workload(orders, "orders")

local stock = {}
for article = 1, ARTICLES do
    stock[article] = { owned = 10, shelf = 10, reserved = 0 }
end

local work = {}
function work.look()
end
function work.price(item)
    item.price = (item.price or 5) + 1
end
function work.reserve(item)
    if item.shelf > 0 and item.reserved == 0 then
        item.shelf, item.reserved = item.shelf - 1, 1
    end
end
function work.recount(item)
    item.owned = item.shelf + (fixed and item.reserved or 0)
end
function work.cancel(item)
    if item.reserved > 0 then
        item.shelf, item.reserved = item.shelf + 1, 0
        assert(item.shelf == item.owned, "the books know of " .. item.owned .. " pieces, " ..
               item.shelf .. " are on the shelf")
    end
end

local next_order = 0
local function clerk()
    while next_order < #orders do
        next_order = next_order + 1
        local order = orders[next_order]
        errand.stat("/") -- walks to the shelf
        work[order.kind](stock[order.article])
    end
end

local clerks = {}
for i = 1, CLERKS do
    clerks[i] = errand.spawn(clerk)
end
errand.gather(clerks)
