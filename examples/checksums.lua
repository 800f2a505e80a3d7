-- SPDX-License-Identifier: MIT
-- checksums: the hash of each file that is named.   errand run -q examples/checksums.lua FILE...
local errand = require "errand"

if #arg == 0 then
    io.stderr:write("usage: checksums.lua FILE...\n")
    os.exit(2)
end
local tasks = {}
for i, path in ipairs(arg) do
    tasks[i] = errand.spawn(pcall, errand.hash_file, path)
end
local failed = 0
for i, path in ipairs(arg) do
    local good, hash, size = errand.await(tasks[i])
    if good then
        print(hash, size, path)
    else
        failed = failed + 1
        io.stderr:write(path, ": ", hash.message, "\n")
    end
end
if failed > 0 then
    error(failed .. " of " .. #arg .. " could not be hashed", 0)
end
