-- SPDX-License-Identifier: MIT
-- search: results appear while somebody types.   errand explore examples/planted/search.lua
-- Planted bug (stale result after a cancel): each key cancels the request of the key before, but
-- a request that is already answered stands in a shield while it draws, and a slow drawing paints
-- its old result over the new one.
-- The word "fixed" runs it without the bug: who draws looks whether its text is still wanted.
local errand = require "errand"
local fixed = ... == "fixed"

local typed, shown = "", ""

local function request(text)
    errand.stat("/") -- the server searches
    errand.shield(function()
        for _ = #text, 5 do
            errand.stat("/") -- draws, and a short text has more results; it must not end half way
        end
        if not fixed or text == typed then
            shown = "results for " .. text
        end
    end)
end

local current
for _, text in ipairs { "e", "er", "err", "errand" } do
    if current then
        errand.cancel(current, "another key was pressed")
    end
    typed = text
    current = errand.spawn(request, text)
    errand.sleep(0.001 + 0.001 * errand.random())
end
errand.sleep(1)
assert(shown == "results for errand", "the results of an older text are shown")
