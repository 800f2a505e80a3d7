-- SPDX-License-Identifier: MIT
-- echo_server: whatever a client sends comes back to it.
--
--     errand run -q examples/echo_server.lua -- --port 7000 [--host 127.0.0.1] [--idle 60]
--
-- Port 0 is a free one.  A client that is silent, or takes nothing, for --idle seconds is let
-- go.  SIGINT or SIGTERM ends it.  Try: nc -N 127.0.0.1 7000
-- A server waits for what comes in real time: it runs in the order "arrival", the default.
local errand = require "errand"

local usage = "usage: echo_server.lua --port N [--host ADDRESS] [--idle SECONDS]\n"

-- What a user did wrong is a line, not a traceback.
local function leave(code, text)
    io.stderr:write(text)
    os.exit(code)
end

local settings = { port = "7000", host = "127.0.0.1", idle = "60" }
local words = { ... }
if words[1] == "--help" then io.write(usage) return end
for i = 1, #words, 2 do
    local name = words[i]:match("^%-%-(%w+)$")
    if not settings[name] or not words[i + 1] then leave(2, usage) end
    settings[name] = words[i + 1]
end
local port, idle = tonumber(settings.port), tonumber(settings.idle)
if not settings.port:find("^%d+$") or port > 65535 then
    leave(2, "echo_server: --port " .. settings.port .. ": give 0 to 65535\n")
elseif not idle or not (idle > 0 and idle < 1e9) then
    leave(2, "echo_server: --idle " .. settings.idle .. ": give seconds, above 0\n")
elseif os.time() == 0 then -- where a seeded order's clock begins
    leave(2, "echo_server: a server runs in the order arrival: leave out --seed\n")
end

local function serve(stream)
    local client <close> = stream
    client:set { receive_timeout = idle, send_timeout = idle }
    for bytes in client do client:send(bytes) end
end

local function accept_all(listener)
    while true do
        local good, stream = pcall(listener.accept, listener)
        if good then
            -- One client's trouble (a reset, silence) is its own.
            errand.spawn(pcall, serve, stream)
        elseif stream.code == "limit" or stream.code == "full" then
            errand.sleep(0.1) -- no descriptor is left: some will be
        else
            error(stream, 0)
        end
    end
end

local signals = errand.signal("INT", "TERM")
local good, listener = pcall(errand.listen, settings.host .. ":" .. settings.port)
if not good then leave(1, "echo_server: " .. listener.message .. "\n") end
print("listening at " .. listener:address())
io.stdout:flush()
local stop = errand.spawn(signals.next, signals)
print("ended by SIG" .. errand.race(stop, errand.spawn(accept_all, listener)))
