-- SPDX-License-Identifier: MIT
-- cache: pages are fetched once and kept.         errand explore examples/planted/cache.lua
-- Planted bug (race): the cache is looked at before the fetch and filled after it, so two
-- readers of one page who come at nearly the same time both fetch it.
-- The word "fixed" runs it without the bug: the fetch in progress is kept too.
local errand = require "errand"
local fixed = ... == "fixed"

local cache, fetches = {}, {}

local function fetch(page)
    fetches[page] = (fetches[page] or 0) + 1
    errand.stat("/") -- as long as a look at the disk takes
    return "text of " .. page
end

local function read(page)
    if fixed then
        cache[page] = cache[page] or errand.spawn(fetch, page)
        return errand.await(cache[page])
    end
    if not cache[page] then
        cache[page] = fetch(page)
    end
    return cache[page]
end

-- Readers come at their own times.
local readers = {}
for i = 1, 4 do
    readers[i] = errand.spawn(function()
        errand.sleep(0.002 * i + 0.002 * errand.random())
        return read("index")
    end)
end
errand.gather(readers)
assert(fetches.index == 1, "the page was fetched " .. fetches.index .. " times")
