-- SPDX-License-Identifier: MIT
-- check: tests written in Lua; results are printed in cmocka's form.
local errand = require "errand"
local check = {}
local failed = 0

-- why_not answers, after it, why it could not be tried; nil = it was.
function check.test(name, body, why_not)
    print("[ RUN      ] " .. name)
    local ok, problem = xpcall(body, debug.traceback)
    collectgarbage()
    local reason = ok and why_not and why_not()
    if reason then
        print("[  REASON  ] " .. name .. ": " .. reason)
        print("[  SKIPPED ] " .. name)
        return
    end
    if not ok then
        failed = failed + 1
        print(problem)
    end
    print((ok and "[       OK ] " or "[  FAILED  ] ") .. name)
end

-- In a run with each kind of reactor; where this machine has not what it needs it is skipped.
function check.both(name, body)
    for _, reactor in ipairs { "io_uring", "epoll" } do
        local full = name .. "_" .. reactor
        local missing
        check.test(full, function()
            local good, problem = pcall(errand.run, body, { reactor = reactor, deadline = 60 })
            if good then return end
            if type(problem) ~= "table" or problem.code ~= "unsupported" then error(problem, 0) end
            missing = problem.message
        end, function() return missing end)
    end
end

function check.equal(found, expected, what)
    if found ~= expected then
        error(("%s: %s instead of %s"):format(what or "value", tostring(found),
                                              tostring(expected)), 2)
    end
end

function check.contains(text, part)
    if not tostring(text):find(part, 1, true) then
        error(("'%s' does not contain '%s'"):format(tostring(text), part), 2)
    end
end

-- The error that f raises; no error is a failure.
function check.raises(f, ...)
    local answers = table.pack(pcall(f, ...))
    if answers[1] then
        error("no error was raised", 2)
    end
    return answers[2]
end

-- The same, for an error table with this code.
function check.raises_code(code, f, ...)
    local problem = check.raises(f, ...)
    if type(problem) ~= "table" or problem.code ~= code then
        error(("raised %s instead of code %s"):format(tostring(problem), code), 2)
    end
    return problem
end

function check.finish()
    io.stdout:flush()
    os.exit(failed == 0, true)
end

return check
