-- SPDX-License-Identifier: MIT
-- How many bytes a script gets through: an echo over the loopback in pieces of one size, and whole files.
--   ./run run -q bench/bytes.lua
-- bench/bytes.py is the same in Python's asyncio, to be run in turns with it.
local errand = require "errand"

local function echo(size)
    local listener <close> = errand.listen("127.0.0.1:0")
    local server = errand.spawn(function()
        local stream <close> = listener:accept()
        while true do
            local bytes = stream:recv_some(size)
            if not bytes then return end
            stream:send(bytes)
        end
    end)
    local stream <close> = errand.connect(listener:address())
    local count = math.max(4, math.min(2000, (32 << 20) // size))
    local piece = ("x"):rep(size)
    local start = errand.now()
    local sender = errand.spawn(function()
        for _ = 1, count do stream:send(piece) end
        stream:shutdown()
    end)
    local back = 0
    for bytes in function() return stream:recv_some(size) end do back = back + #bytes end
    local seconds = errand.now() - start
    errand.await(sender)
    errand.await(server)
    assert(back == count * size, "not all came back")
    return back / seconds / 1e6
end

local function read(size)
    local path = os.tmpname()
    errand.write_file(path, ("x"):rep(size))
    local count = 200
    local start = errand.now()
    for _ = 1, count do assert(#errand.read_file(path) == size) end
    local seconds = errand.now() - start
    os.remove(path)
    return seconds / count * 1e6
end

for _, size in ipairs { 4096, 65536, 1 << 20 } do
    echo(size) -- warms up
    print(("echo in pieces of %7d: %6.0f MB/s    a file of that size: %6.0f us"):format(
        size, echo(size), read(size)))
end
