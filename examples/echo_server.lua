-- SPDX-License-Identifier: MIT
-- echo_server: whatever a client sends comes back to it.
--
--     errand run -q examples/echo_server.lua -- --port 7000 [--host 127.0.0.1] [--idle 60]
--
-- Port 0 is a free one.  A client that is silent, or takes nothing, for --idle seconds is let
-- go.  SIGINT or SIGTERM ends it.  Try: nc -N 127.0.0.1 7000
local errand = require "errand"

local settings = { port = "7000", host = "127.0.0.1", idle = "60" }
local words = { ... }
for i = 1, #words, 2 do
    local name = words[i]:match("^%-%-(%w+)$")
    if not settings[name] or not words[i + 1] then
        io.stderr:write("usage: echo_server.lua --port N [--host ADDRESS] [--idle SECONDS]\n")
        os.exit(2)
    end
    settings[name] = words[i + 1]
end

local function serve(stream)
    local client <close> = stream
    local idle = tonumber(settings.idle)
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
-- What a user did wrong is a line, not a traceback.
local good, listener = pcall(errand.listen, settings.host .. ":" .. settings.port)
if not good then
    io.stderr:write("echo_server: ", listener.message, "\n")
    os.exit(1)
end
print("listening at " .. listener:address())
io.stdout:flush()
local stop = errand.spawn(signals.next, signals)
print("ended by SIG" .. errand.race(stop, errand.spawn(accept_all, listener)))
