-- SPDX-License-Identifier: MIT
-- tour: a small script that sends out all kinds of work and gets one completion for each.
--
--     errand tour                          this script, in arrival order
--     errand tour --seed 7                 the same completions in the same order each time
--     errand run examples/tour.lua --seed 7
--
-- It looks at the current folder.  Nothing it prints depends on real time, on the number of a
-- process or on where the tree lies.
local errand = require "errand"

-- ---- which files ---------------------------------------------------------------------------

-- Everything that is neither version control nor built.
local function is_source_folder(name)
    if name == ".git" or name == ".hg" or name == ".svn" or name == "__pycache__" then
        return false
    end
    return name ~= "build" and name ~= "CMakeFiles" and not name:find("^cmake%-build")
        and not name:find("^build[-_.]")
end

local function is_source_file(name)
    local built = { o = true, a = true, so = true, pyc = true }
    return not built[name:match("%.(%w+)$") or ""]
end

local function count(n, what)
    return n .. " " .. what .. (n == 1 and "" or "s")
end

-- The paths of all source files below the current folder, sorted, and how many folders there
-- are.  Folders of one depth are listed at the same time.
local function list_tree()
    local files, folders, level = {}, 0, { "" }
    while #level > 0 do
        local tasks = {}
        for i, folder in ipairs(level) do
            tasks[i] = errand.spawn(errand.list_dir, folder == "" and "." or folder)
        end
        local lists = errand.gather(tasks)
        local below = {}
        for i, folder in ipairs(level) do
            local prefix = folder == "" and "" or folder .. "/"
            for _, entry in ipairs(lists[i]) do
                if entry.kind == "directory" and is_source_folder(entry.name) then
                    below[#below + 1] = prefix .. entry.name
                elseif entry.kind == "regular" and is_source_file(entry.name) then
                    files[#files + 1] = prefix .. entry.name
                end
            end
        end
        folders = folders + #level
        level = below
    end
    table.sort(files)
    return files, folders
end

-- ---- the stops of the tour -------------------------------------------------------------------

-- One number for a list of texts: FNV-1a, 64 bits.
local function fold(texts)
    local hash = 0xcbf29ce484222325
    for _, text in ipairs(texts) do
        for i = 1, #text do
            hash = (hash ~ text:byte(i)) * 0x100000001b3
        end
        hash = hash * 0x100000001b3
    end
    return string.format("%016x", hash)
end

-- At most 64 files are out at once, however large the tree is.
local function hash_tree()
    local files, folders = list_tree()
    local lines, bytes, unreadable, next_file = {}, 0, 0, 1
    local function hash_some()
        while next_file <= #files do
            local i = next_file
            next_file = i + 1
            local good, hash, size = pcall(errand.hash_file, files[i])
            if good then
                lines[i] = files[i] .. " " .. hash
                bytes = bytes + size
            elseif hash.code == "cancelled" then
                error(hash)
            else
                lines[i] = files[i] .. " " .. hash.code
                unreadable = unreadable + 1
            end
        end
    end
    local tasks = {}
    for i = 1, math.min(64, #files) do
        tasks[i] = errand.spawn(hash_some)
    end
    errand.gather(tasks)
    return string.format("%s in %s, %s, %d unreadable, hash %s", count(#files, "file"),
                         count(folders, "folder"), count(bytes, "byte"), unreadable, fold(lines))
end

local function look_up()
    local good, found = pcall(errand.resolve, "localhost")
    if not good then
        if found.code == "cancelled" then
            error(found)
        end
        return "not known here: " .. found.code
    end
    local addresses = {}
    for i, entry in ipairs(found) do
        addresses[i] = entry.address
    end
    return table.concat(addresses, " ")
end

local function child_echo()
    local result = errand.command { "echo", "a child process says hello" }
    assert(result.status == 0 and result.output == "a child process says hello\n")
    return string.format("status %d, %q", result.status, result.output:gsub("\n", ""))
end

local function child_cat()
    local input = ("one line goes in and comes out\n"):rep(1000)
    local result = errand.command { "cat", input = input }
    assert(result.status == 0 and result.output == input)
    return string.format("status %d, %d bytes went in and came out", result.status,
                         #result.output)
end

-- The error that f must raise.
local function failure_of(f, ...)
    local good, problem = pcall(f, ...)
    assert(not good, "it should have failed")
    return problem
end

local function cancel_one()
    local task = errand.spawn(errand.command, { "sleep", "30", effect_free = true })
    errand.sleep(0.02)
    assert(errand.cancel(task, "the tour goes on"))
    local problem = failure_of(errand.await, task)
    assert(problem.code == "cancelled", problem)
    return "sleep 30: " .. problem.message:gsub("^task %d+ ", "")
end

local function time_one_out()
    local problem = failure_of(errand.timeout, 0.02, errand.command,
                               { "sleep", "60", effect_free = true })
    assert(problem.code == "timeout", problem)
    return "sleep 60: " .. problem.message
end

local function panic_once()
    local problem = failure_of(errand.job, "panic", "a job went wrong on purpose")
    assert(problem.code == "panic", problem)
    return "the run goes on: " .. problem.message
end

local function count_primes()
    return string.format("%d below 1000000", errand.job("primes", 1000000))
end

-- ---- all of it at once ---------------------------------------------------------------------------

local stops = {
    { "tree", hash_tree },
    { "localhost", look_up },
    { "echo", child_echo },
    { "cat", child_cat },
    { "cancel", cancel_one },
    { "timeout", time_one_out },
    { "panic", panic_once },
    { "primes", count_primes },
}
local tasks = {}
for i, stop in ipairs(stops) do
    tasks[i] = errand.spawn(stop[2])
end
local found = errand.gather(tasks)

-- What was cancelled is still on its way back: it completes like everything else.
local accounts = errand.stats()
while accounts.drained < accounts.accepted do
    errand.sleep(0.01)
    accounts = errand.stats()
end

for i, stop in ipairs(stops) do
    print(string.format("%-10s %s", stop[1] .. ":", found[i]))
end
print(string.format("%-10s %d went out, %d came back", "accounts:", accounts.accepted,
                    accounts.drained))
