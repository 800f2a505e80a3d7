-- SPDX-License-Identifier: MIT
-- file_server: the files of a folder, over HTTP 1.1.
--
--     errand run -q examples/file_server.lua -- --root FOLDER [--port 8000] [--host 127.0.0.1]
--                                             [--patience 10]
--
-- GET and HEAD; connections stay open for further requests.  Nothing outside of the folder is
-- served: no "..", no symbolic links.  A client has --patience seconds for each request's
-- head, and for each piece that it is sent.  Port 0 is a free one.  Ranges are not served: who asks
-- for one gets 200 and the whole file.
-- A server waits for what comes in real time: it runs in the order "arrival", the default.
local errand = require "errand"

local usage = "usage: file_server.lua --root FOLDER [--port N] [--host ADDRESS] " ..
              "[--patience SECONDS]\n"

-- What a user did wrong is a line, not a traceback.
local function leave(code, text)
    io.stderr:write(text)
    os.exit(code)
end

local settings = { root = "", port = "8000", host = "127.0.0.1", patience = "10" }
local words = { ... }
if words[1] == "--help" then io.write(usage) return end
for i = 1, #words, 2 do
    local name = words[i]:match("^%-%-(%w+)$")
    if not settings[name] or not words[i + 1] then leave(2, usage) end
    settings[name] = words[i + 1]
end
if settings.root == "" then leave(2, usage) end
local port, patience = tonumber(settings.port), tonumber(settings.patience)
if not settings.port:find("^%d+$") or port > 65535 then
    leave(2, "file_server: --port " .. settings.port .. ": give 0 to 65535\n")
elseif not patience or not (patience > 0 and patience < 1e9) then
    leave(2, "file_server: --patience " .. settings.patience .. ": give seconds, above 0\n")
elseif os.time() == 0 then -- where a seeded order's clock begins
    leave(2, "file_server: a server runs in the order arrival: leave out --seed\n")
end

local HEAD_MAX, INDEX_MAX, PIECE, REST_MAX = 16384, 1 << 26, 1 << 18, 1 << 20
local reasons = {
    [200] = "OK", [301] = "Moved Permanently", [400] = "Bad Request", [404] = "Not Found",
    [405] = "Method Not Allowed", [413] = "Content Too Large",
    [414] = "URI Too Long", [431] = "Request Header Fields Too Large", [505] = "Version Not Supported",
}
local types = {
    html = "text/html; charset=utf-8", txt = "text/plain; charset=utf-8", css = "text/css",
    js = "text/javascript", json = "application/json", png = "image/png", jpg = "image/jpeg",
    svg = "image/svg+xml", md = "text/plain; charset=utf-8",
}

-- ---- what is asked for ---------------------------------------------------------------------

-- The request line and the fields; nil at the end of the connection.  Of what is too long there is
-- head.refused, the status that it is answered with.
local function read_head(client)
    local head, room = { fields = {} }, HEAD_MAX
    local function read_line(status)
        local good, line = pcall(client.recv_line, client, room)
        if not good and line.code == "too_large" then head.refused = status
        elseif not good then error(line, 0) end
        room = good and line and room - #line - 2 or 0
        return good and line
    end
    local line = read_line(414)
    if not line then return head.refused and head end
    head.method, head.target, head.version = line:match("^(%u+) (%S+) HTTP/(%d%.%d)$")
    while true do
        if room < 1 then head.refused = 431 return head end
        line = read_line(431)
        if not line then return head.refused and head end
        if line == "" then return head end
        local name, value = line:match("^([%w!#$%%&'*+.^_`|~-]+):%s*(.-)%s*$")
        name = name and name:lower()
        local framing = name == "content-length" or name == "transfer-encoding"
        -- Two that differ: where this request ends, or whom it is for, hangs on who reads it.
        if not name or (framing or name == "host") and head.fields[name] and
            head.fields[name] ~= value:lower() then
            head.method = nil
        else
            head.fields[name] = value:lower()
        end
    end
end

-- "/a%20b?x" to "a b"; nil for what is no path below the root.
local function path_of(target)
    local path = target:match("^(/[^?#]*)")
    if not path or path:find("%%%X") or path:find("%%.?$") then return end
    path = path:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
    if path:find("\0", 1, true) then return end
    local parts = {}
    for part in path:gmatch("[^/]+") do
        if part == ".." then return end
        if part ~= "." then parts[#parts + 1] = part end
    end
    return parts, path:sub(-1) == "/"
end

-- Goes down part by part, so that no link leads out.
local function find(parts)
    local path, found = settings.root, { kind = "directory" }
    for _, part in ipairs(parts) do
        path = path .. "/" .. part
        found = errand.stat(path, false)
        if found.kind ~= "directory" and found.kind ~= "regular" then
            error({ code = "not_found" }, 0)
        end
    end
    return path, found
end

-- ---- what is answered ----------------------------------------------------------------------

-- body: a string, or an open file with fields.size bytes.
local function answer(client, head, status, body, fields)
    fields = fields or {}
    local size = fields.size or #body
    local lines = {
        ("HTTP/1.1 %d %s"):format(status, reasons[status]),
        "Server: errand",
        "Date: " .. os.date("!%a, %d %b %Y %H:%M:%S GMT"),
        "Content-Length: " .. size,
        "Content-Type: " .. (fields.type or "text/plain; charset=utf-8"),
    }
    if fields.location then lines[#lines + 1] = "Location: " .. fields.location end
    if status == 405 then lines[#lines + 1] = "Allow: GET, HEAD" end
    if not head.stays then lines[#lines + 1] = "Connection: close" end
    local text = table.concat(lines, "\r\n") .. "\r\n\r\n"
    if head.method == "HEAD" then client:send(text) return end
    client:send(text)
    for at = 0, size - 1, PIECE do -- so that patience counts for each piece
        local count = math.min(PIECE, size - at)
        local piece = fields.size and body:read(count, at) or body:sub(at + 1, at + count)
        if #piece < count then error("the file became shorter", 0) end
        client:send(piece)
    end
end

local function html(text)
    return (text:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;",
                                   ['"'] = "&quot;" }))
end

local function encoded(name)
    return (name:gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function listing(path)
    local lines = { "<!DOCTYPE html>", "<title>files</title>", "<ul>" }
    for _, entry in ipairs(errand.list_dir(path)) do
        local mark = entry.kind == "directory" and "/" or ""
        if entry.kind == "directory" or entry.kind == "regular" then
            lines[#lines + 1] = ('<li><a href="%s%s">%s%s</a>'):format(
                encoded(entry.name), mark, html(entry.name), mark)
        end
    end
    return table.concat(lines, "\n") .. "\n</ul>\n"
end

local function serve_path(client, head, parts, is_folder)
    local path, found = find(parts)
    if found.kind == "directory" and not is_folder then
        for i, part in ipairs(parts) do parts[i] = encoded(part) end
        return answer(client, head, 301, "", { location = "/" .. table.concat(parts, "/") .. "/" })
    elseif found.kind == "directory" then
        local good, index = pcall(errand.read_file, path .. "/index.html", INDEX_MAX)
        return answer(client, head, 200, good and index or listing(path), { type = types.html })
    elseif is_folder then
        error({ code = "not_found" }, 0)
    end
    local kind = types[(path:match("%.(%w+)$") or ""):lower()] or "application/octet-stream"
    local file <close> = errand.open(path)
    answer(client, head, 200, file, { type = kind, size = file:stat().size })
end

local statuses = { not_found = 404, permission = 404, not_directory = 404, is_directory = 404,
                   not_regular = 404, inval = 400, too_large = 413 }

-- One request; false = no further one on this connection.
local function serve_one(client)
    local head = errand.timeout(patience, read_head, client)
    if not head then return false end
    local fields = head.fields
    if head.refused then
        answer(client, head, head.refused, reasons[head.refused]:lower() .. "\n")
        return false
    elseif not head.method then
        answer(client, head, 400, "this is no request\n")
        return false
    elseif head.version ~= "1.1" and head.version ~= "1.0" then
        answer(client, head, 505, "HTTP 1.1 is spoken here\n")
        return false
    elseif head.version == "1.1" and not fields.host then
        answer(client, head, 400, "HTTP 1.1 wants the field Host\n")
        return false
    end
    -- A body is not read, so nothing can follow it.
    local length, coding = fields["content-length"], fields["transfer-encoding"]
    if length and (coding or not length:find("^%d+$")) then
        answer(client, head, 400, "where this request ends is not clear\n")
        return false
    end
    local has_body = coding or tonumber(length or 0) ~= 0
    head.stays = not has_body and fields.connection ~= "close" and
        (head.version == "1.1" or fields.connection == "keep-alive")
    if head.method ~= "GET" and head.method ~= "HEAD" then
        answer(client, head, 405, "GET and HEAD\n")
        return head.stays
    end
    local parts, is_folder = path_of(head.target)
    if not parts then
        answer(client, head, 400, "this is no path here\n")
        return head.stays
    end
    local good, problem = pcall(serve_path, client, head, parts, is_folder)
    if good then return head.stays end
    local status = type(problem) == "table" and statuses[problem.code]
    if not status then error(problem, 0) end
    answer(client, head, status, reasons[status]:lower() .. "\n")
    return head.stays
end

-- A connection that is closed with something unread is reset, and an answer on its way is lost.
local function read_rest(client)
    local room = REST_MAX
    for bytes in client do
        room = room - #bytes
        if room < 0 then return end
    end
end

local function serve(stream)
    local client <close> = stream
    client:set { send_timeout = patience }
    while serve_one(client) do end
    client:shutdown("send")
    errand.timeout(patience, read_rest, client)
end

local function need(good, ...)
    if good then return ... end
    leave(1, "file_server: " .. (...).message .. "\n")
end

local root = need(pcall(errand.stat, settings.root))
need(root.kind == "directory", { message = settings.root .. " is no folder" })
local signals = errand.signal("INT", "TERM")
local listener <close> = need(pcall(errand.listen, settings.host .. ":" .. settings.port))
print("serving " .. settings.root .. " at http://" .. listener:address() .. "/")
io.stdout:flush()
local function accept_all()
    while true do
        local good, stream = pcall(listener.accept, listener)
        if good then errand.spawn(pcall, serve, stream)
        elseif stream.code == "limit" or stream.code == "full" then errand.sleep(0.1)
        else error(stream, 0) end
    end
end
local stop = errand.spawn(signals.next, signals)
print("ended by SIG" .. errand.race(stop, errand.spawn(accept_all)))
