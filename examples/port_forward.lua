-- SPDX-License-Identifier: MIT
-- port_forward: connections to one address go on to another.
--
--     errand run -q examples/port_forward.lua -- --listen 127.0.0.1:8080 --to example.org:80
--
-- Addresses are "host:port", "[::1]:80" or "unix:/path", on both sides.  SIGINT or SIGTERM ends
-- it.  Each direction ends for itself, as the two ends wish.
-- A server waits for what comes in real time: it runs in the order "arrival", the default.
local errand = require "errand"

local usage = "usage: port_forward.lua --listen ADDRESS --to ADDRESS\n"

-- What a user did wrong is a line, not a traceback.
local function leave(code, text)
    io.stderr:write(text)
    os.exit(code)
end

local settings = { listen = "", to = "" }
local words = { ... }
if words[1] == "--help" then io.write(usage) return end
for i = 1, #words, 2 do
    local name = words[i]:match("^%-%-(%w+)$")
    if not settings[name] or not words[i + 1] then leave(2, usage) end
    settings[name] = words[i + 1]
end
if settings.listen == "" or settings.to == "" then leave(2, usage) end
for name, address in pairs(settings) do
    local port = not address:find("^unix:") and address:match(":(%d+)$")
    if port and tonumber(port) > 65535 then
        leave(2, "port_forward: --" .. name .. " " .. address .. ": ports end at 65535\n")
    end
end
if os.time() == 0 then -- where a seeded order's clock begins
    leave(2, "port_forward: a server runs in the order arrival: leave out --seed\n")
end

-- What one end sends, the other gets, up to the end of it.
local function copy(from, to)
    for bytes in from do to:send(bytes) end
    to:shutdown("send")
end

local function forward(accepted)
    local near <close> = accepted
    local far <close> = errand.connect(settings.to, { timeout = 10 })
    errand.gather(errand.spawn(copy, near, far), errand.spawn(copy, far, near))
end

local function report(accepted)
    local peer = accepted:peer() or "somebody"
    local good, problem = pcall(forward, accepted)
    if not good then io.stderr:write(peer, ": ", tostring(problem), "\n") end
end

local signals = errand.signal("INT", "TERM")
local good, listener = pcall(errand.listen, settings.listen)
if not good then leave(1, "port_forward: " .. listener.message .. "\n") end
print("listening at " .. listener:address() .. ", to " .. settings.to)
io.stdout:flush()
local function accept_all()
    while true do errand.spawn(report, listener:accept()) end
end
local stop = errand.spawn(signals.next, signals)
print("ended by SIG" .. errand.race(stop, errand.spawn(accept_all)))
