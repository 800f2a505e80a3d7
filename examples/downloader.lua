-- SPDX-License-Identifier: MIT
-- downloader: several files from the web at once, with a progress bar on a terminal.
--
--     errand run -q examples/downloader.lua -- [--to FOLDER] [--at-once 4] URL...
--
-- A file is named after the last part of its url.  It is written as NAME.part and renamed when
-- it is whole.  Exit code 1: something could not be had; standard error says what and why.
local errand = require "errand"

local usage = "usage: downloader.lua [--to FOLDER] [--at-once N] URL...\n"

-- What a user did wrong is a line, not a traceback.
local function leave(code, text)
    io.stderr:write(text)
    os.exit(code)
end

local settings, urls = { ["--to"] = ".", ["--at-once"] = "4" }, {}
local words, at = { ... }, 1
while words[at] do
    local word = words[at]
    if word == "--help" then io.write(usage) return end
    if settings[word] and words[at + 1] then settings[word], at = words[at + 1], at + 1
    elseif word:find("^%-") then leave(2, usage)
    else urls[#urls + 1] = word end
    at = at + 1
end
local folder, at_once = settings["--to"], math.tointeger(tonumber(settings["--at-once"]) or 0)
if #urls == 0 then
    leave(2, usage)
elseif not at_once or at_once < 1 then
    leave(2, "downloader: --at-once " .. settings["--at-once"] .. ": give a number above 0\n")
end

local state = { bytes = 0, expected = 0, whole = 0, failed = 0 }

-- ---- the bar -------------------------------------------------------------------------------

local on_terminal = errand.ffi.open(nil):fn("isatty", "i32 (i32)")(2) == 1
local function draw()
    local share = state.expected > 0 and math.min(state.bytes / state.expected, 1) or 0
    local filled = math.floor(share * 30)
    io.stderr:write(("\r[%s%s] %3d %%  %.1f of %.1f MiB, %d of %d files\27[K"):format(
        ("#"):rep(filled), ("."):rep(30 - filled), math.floor(share * 100),
        state.bytes / 1048576, state.expected / 1048576, state.whole, #urls))
end
local function say(text)
    if on_terminal then io.stderr:write("\r\27[K") end
    io.stderr:write(text, "\n")
end

-- ---- the work ------------------------------------------------------------------------------

local function fetch(url)
    local name = url:match("^%w+://[^/]+/.-([^/?#]+)[?#]?[^/]*$") or "index.html"
    local path = folder .. "/" .. name
    local response = errand.http.get(url, { stream = true, timeout = 60 })
    local body <close> = response.body
    if response.status ~= 200 then error("the server answered " .. response.status, 0) end
    local size = tonumber(response.headers["content-length"])
    state.expected = state.expected + (size or 0)
    local file = assert(io.open(path .. ".part", "wb"))
    local out <close> = file
    local got = 0
    for piece in body do
        assert(file:write(piece))
        got, state.bytes = got + #piece, state.bytes + #piece
        if not size then state.expected = state.expected + #piece end
    end
    if size and got ~= size then error(("only %d of %d bytes came"):format(got, size), 0) end
    assert(file:close())
    assert(os.rename(path .. ".part", path))
    state.whole = state.whole + 1
    return got
end

local next_url = 1
local function worker()
    while next_url <= #urls do
        local url = urls[next_url]
        next_url = next_url + 1
        local good, result = pcall(fetch, url)
        if good then say(("%s: %d bytes"):format(url, result))
        else
            state.failed = state.failed + 1
            local why = type(result) == "table" and result.message or tostring(result)
            say(why:find(url, 1, true) and why or url .. ": " .. why)
        end
    end
end

local workers = {}
for i = 1, math.min(at_once, #urls) do workers[i] = errand.spawn(worker) end
if on_terminal then
    errand.spawn(function() while true do draw() errand.sleep(0.1) end end)
end
errand.gather(workers)
if on_terminal then draw() io.stderr:write("\n") end
print(("%d of %d files, %d bytes"):format(state.whole, #urls, state.bytes))
if state.failed > 0 then os.exit(1, true) end -- each has had its line
