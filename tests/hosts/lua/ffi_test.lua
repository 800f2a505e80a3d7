-- SPDX-License-Identifier: MIT
-- Goal: scripts call foreign functions, in threads and in sandboxed processes, and hear of
-- whatever happens there.  Method: functions of the C library, in every order.
local check = require "check"
local errand = require "errand"
local equal, contains = check.equal, check.contains

local tiers = { "thread", "process" }

local function both(name, body)
    for _, tier in ipairs(tiers) do
        local function run() body(errand.ffi.open(nil, { isolation = tier }), tier) end
        check.test(name .. "_" .. tier, function() errand.run(run) end)
        check.test(name .. "_" .. tier .. "_inline",
                   function() errand.run(run, { order = "inline", seed = 3 }) end)
    end
end

both("numbers_go_out_and_come_back", function(c)
    equal(c:fn("labs", "i64 (i64)")(-7), 7)
    equal(c:fn("i64 labs(i64)")(math.mininteger + 1), math.maxinteger)
    equal(c:fn("strtod", "f64 (string, pointer)")("2.5e3", nil), 2500.0)
    equal(c:fn("toupper", "i32 (i32)")(97), 65)
    equal(tostring(c:fn("labs", "i64 (i64)")), "errand.function: i64 labs(i64)")
end)

both("texts_and_memory_are_copied_each_way", function(c)
    equal(c:fn("strlen", "u64 (string)")("four"), 4)
    local count, text = c:fn("snprintf", "i32 (out bytes, u64, string, ..., i32, string)")(
        16, 16, "%d-%s", 12, "ab")
    equal(count, 5)
    equal(text:match("^[^\0]*"), "12-ab")
    equal(#text, 16)
    local _, moved = c:fn("memset", "pointer (inout bytes, i32, u64)")("abcdef", 120, 3)
    equal(moved, "xxxdef")
    equal(c:fn("strchr", "string (string, i32)")("a=b", 61), "=b")
    equal(c:fn("strchr", "string (string, i32)")("a=b", 33), nil)
end)

both("structures_are_tables", function(c)
    local quotient = c:fn("ldiv", "{i64, i64} (i64, i64)")(-17, 5)
    equal(quotient[1], -3)
    equal(quotient[2], -2)
end)

both("errno_is_a_result_when_asked", function(c)
    local result, code = c:fn("close", "i32 (i32)", { errno = true })(-1)
    equal(result, -1)
    equal(code, 9) -- EBADF
end)

both("buffers_are_worked_on_in_place_and_pinned_meanwhile", function(c)
    local buffer = errand.ffi.buffer(8)
    equal(#buffer, 8)
    buffer:set(1, "abcdefgh")
    c:fn("memset", "pointer (inout bytes, i32, u64)")(buffer, 46, 4)
    equal(buffer:get(), "....efgh")
    equal(buffer:get(4, 5), ".e")
    buffer:resize(3)
    equal(buffer:get(), "...")
    check.raises(buffer.get, buffer, 1, 4)
    check.raises(buffer.set, buffer, 3, "ab")
end)

both("wrong_arguments_name_the_argument_and_the_mend", function(c)
    local abs = c:fn("abs", "i32 (i32)")
    -- As of every verb: the kind and the range are strings, what a text says is a code.
    for part, value in pairs { ["1 arguments are wanted"] = table.pack(),
                               ["argument 1: an integer is wanted, not string"] = { "x" },
                               ["argument 1"] = { 1 << 40 },
                               ["argument 1: a number without a fraction is wanted, not 1.5"] = { 1.5 },
                               ["argument 1: an integer is wanted, not 1e+300"] = { 1e300 } } do
        local problem = check.raises(abs, table.unpack(value))
        equal(type(problem), "string")
        contains(problem, "abs: ")
        contains(problem, part)
    end
    local sort = c:fn("qsort", "void (inout bytes, u64, u64, fn(i32(pointer, pointer)))")
    contains(check.raises(sort, "ba", 2, 1, 7), "argument 4: a function or nil is wanted")
    contains(check.raises(c:fn("memset", "pointer (out bytes, i32, u64)"), -1, 0, 0),
             "argument 1: a number of bytes, a buffer or nil is wanted, not -1")
    contains(check.raises(c:fn("ldiv", "{i64, i64} ({i64, i64})"), { 1 }),
             "2 values are wanted, the table has 1")
    local place = check.raises_code("inval", c.fn, c, "abs", "i32 (i33)")
    contains(place, "i32 (i33): column 6: 'i33' is no type")
    contains(check.raises_code("inval", c.fn, c, "abs", "i32"), "column 4: '(' and the parameters")
    contains(check.raises_code("inval", c.fn, c, "abs", "i32 abs(i32)"), "leave it out")
    contains(check.raises_code("inval", c.fn, c, "i32 (i32)"), "the function's name")
end)

both("what_is_missing_has_a_code", function(c, tier)
    local missing = check.raises_code("no_symbol", c:fn("no_such_function", "void ()"))
    equal(math.type(missing.job_code), "integer")
    contains(missing.position, "check.lua:") -- whose line called, as at the head of tostring
    equal(tostring(missing):sub(1, #missing.position), missing.position)
    local nope = errand.ffi.open("libnope.so.9", { isolation = tier })
    contains(check.raises_code("no_library", nope:fn("f", "void ()")), "libnope.so.9")
end)

local function process(name, body, options)
    check.test(name, function()
        errand.run(function() body(errand.ffi.open(nil, options)) end)
    end)
end

process("each_way_to_end_badly_has_a_code_and_the_next_call_works", function(c)
    local abs = c:fn("abs", "i32 (i32)")
    local crash = check.raises_code("crashed", c:fn("abort", "void ()"))
    equal(crash.signal, 6)
    equal(abs(-1), 1)
    equal(check.raises_code("crashed", c:fn("strlen", "u64 (pointer)"), 8).signal, 11)
    equal(abs(-2), 2)
    contains(check.raises_code("exited", c:fn("exit", "void (i32)"), 7), "7")
    equal(abs(-3), 3)
    check.raises_code("policy", c:fn("getppid", "i32 ()"))
    equal(abs(-4), 4)
end, { isolation = "process" })

process("an_endless_call_ends_at_its_deadline", function(c)
    check.raises_code("deadline", c:fn("sleep", "u32 (u32)"), 60)
    equal(c:fn("abs", "i32 (i32)")(-1), 1)
end, { isolation = "process", deadline = 0.1 })

check.test("an_endless_call_ends_in_each_order", function()
    for _, options in ipairs { {}, { order = "inline", seed = 3 }, { order = "paced", seed = 3 } } do
        errand.run(function()
            local c = errand.ffi.open(nil, { isolation = "process", deadline = options.order and 0.1,
                                             limit = 0.2 })
            check.raises_code("deadline", c:fn("sleep", "u32 (u32)"), 60)
            equal(c:fn("abs", "i32 (i32)")(-1), 1)
        end, options)
        if options.order then -- in a thread the run ends, and says what would have helped
            contains(check.raises_code("external", errand.run, function()
                errand.ffi.open(nil, { deadline = 0.1 }):fn("sleep", "u32 (u32)")(1)
            end, { order = options.order, seed = 3, watchdog = 0.2 }), "give what it does a real limit")
        end
    end
end)

process("a_cancel_ends_the_call_and_its_process", function(c)
    local nap = c:fn("sleep", "u32 (u32)")
    local task = errand.spawn(function() nap(60) end)
    errand.sleep(0.02)
    errand.cancel(task)
    check.raises_code("cancelled", errand.await, task)
    equal(c:fn("abs", "i32 (i32)")(-1), 1)
end, { isolation = "process" })

process("what_a_sandbox_refuses_is_told_with_its_cause", function(c)
    local strlen = c:fn("strlen", "u64 (string)")
    equal(strlen(("x"):rep(60000)), 60000)
    contains(check.raises_code("inval", strlen, ("x"):rep(70000)), "input_max")
    contains(check.raises_code("inval", errand.ffi.open, "./some.so",
                               { isolation = "process" }), "./some.so")
    contains(check.raises_code("no_exec", c:fn("qsort",
        "void (inout bytes, u64, u64, fn(i32(pointer, pointer)))"), "ba", 2, 1,
        function() return 0 end), "promise 'callback'")
end, { isolation = "process", input_max = 65536 })

process("a_library_may_be_named_from_the_current_folder", function()
    local name = os.tmpname() -- a file that is no library
    local file = errand.ffi.open(("../"):rep(40) .. name:sub(2), { isolation = "process" })
    contains(tostring(check.raises_code("no_library", file:fn("f", "void ()"))), name)
    os.remove(name)
end, { isolation = "process" })

check.test("a_policy_is_refused_in_the_words_of_its_options_where_it_is_given", function()
    local function opened(options)
        options.isolation = "process"
        return tostring(check.raises_code("inval", errand.ffi.open, nil, options))
    end
    contains(opened { memory = 64 }, "memory: 64 must be from")
    contains(opened { descriptors = 5000 }, "descriptors: 5000 must be from 16 to 4096")
    contains(opened { crash_limit = 70000 }, "crash_limit: must be at most 65536")
    contains(opened { paths = { ["/etc"] = "r" } },
             "the right r means nothing without promise = 'rpath'")
    contains(opened { promise = "rpath", paths = { etc = "r" } }, "must begin with /, not 'etc'")
    contains(opened { promise = "inet" }, "tcp_ports: with promise = 'inet' name those")
end)

process("memory_is_bounded", function(c)
    equal(c:fn("malloc", "pointer (u64)")(1 << 30), nil)
end, { isolation = "process", memory = 256 << 20 })

process("a_denied_call_is_named_when_asked", function(c)
    equal(check.raises_code("policy", c:fn("getppid", "i32 ()")).system_call, "getppid")
end, { isolation = "process", report_denied = true })

-- Warnings go to the interpreter's standard error, so it takes another one to see them.
check.test("what_a_policy_answers_with_an_error_is_warned_of_when_asked", function()
    local text = [[
        local errand = require "errand"
        warn "@on"
        errand.run(function()
            local c = errand.ffi.open(nil, { isolation = "process", report_denied = %s })
            print(c:fn("open", "i32 (string, i32)")("/etc/passwd", 0))
        end)]]
    for _, asked in ipairs { true, false } do
        local stream = io.popen(("%s -e '%s' 2>&1"):format(arg[-1], text:format(asked)))
        local said = stream:read("a")
        stream:close()
        contains(said, "-1\n")
        if asked then
            contains(said, "Lua warning: open: its policy refused the system call openat: Permission denied\n")
        else
            equal(said, "-1\n")
        end
    end
end)

process("files_are_read_where_the_policy_says", function(c)
    local open = c:fn("open", "i32 (string, i32)", { errno = true })
    local fd = open("/etc/hostname", 0)
    equal(fd >= 0, true)
    local denied, code = open("/usr/bin/env", 0)
    equal(denied, -1)
    equal(code, 13) -- EACCES
end, { isolation = "process", promise = "rpath", paths = { ["/etc"] = "r" } })

check.test("calls_run_at_the_same_time", function()
    errand.run(function()
        local c = errand.ffi.open(nil, { isolation = "process", workers = 2 })
        local labs = c:fn("labs", "i64 (i64)")
        local tasks = {}
        for i = 1, 200 do tasks[i] = errand.spawn(function() return labs(-i) end) end
        for i = 1, 200 do equal(errand.await(tasks[i]), i) end
        local pool = c:sandbox()
        equal(pool.crashed, 0)
        equal(pool.started <= 4, true)
        local names = {} -- as docs/lua.md lists them
        for name in pairs(pool) do names[#names + 1] = name end
        table.sort(names)
        equal(table.concat(names, " "), "breaker_open busy crashed degraded dying killed "
              .. "landlock_abi layers ready recycled reserve started starting text")
    end)
end)

check.test("a_callback_sorts_for_the_c_library", function()
    for _, tier in ipairs(tiers) do
        errand.run(function()
            local c = errand.ffi.open(nil, {
                isolation = tier, promise = tier == "process" and "callback" or nil })
            local sort = c:fn("qsort",
                "void (inout bytes, u64, u64, fn(i32 (pointer, pointer)))")
            -- The addresses are the callee's own: only how often it asked can be seen here.
            local asked = 0
            local sorted = sort(string.pack("i4i4i4", 3, 1, 2), 3, 4, function(a, b)
                asked = asked + 1
                return a < b and -1 or 1
            end)
            equal(#sorted, 12, tier)
            equal(asked >= 2, true, tier)
        end)
    end
end)

local function sorting(tier)
    local c = errand.ffi.open(nil, {
        isolation = tier, promise = tier == "process" and "callback" or nil })
    local sort = c:fn("qsort", "void (inout bytes, u64, u64, fn(i32 (pointer, pointer)))")
    return function(compare) return sort("dcba", 4, 1, compare) end
end

local orders = { {}, { order = "inline", seed = 3 }, { order = "paced", seed = 3 } }

local function in_each(name, body)
    for _, tier in ipairs(tiers) do
        for _, options in ipairs(orders) do
            check.test(("%s_%s_%s"):format(name, tier, options.order or "arrival"),
                       function() errand.run(function() body(sorting(tier)) end, options) end)
        end
    end
end

in_each("what_a_callback_raises_is_raised_by_its_call", function(sort)
    local mine, entered = {}, 0
    local function raise()
        entered = entered + 1
        error(mine)
    end
    equal(check.raises(sort, raise), mine)
    equal(entered, 1) -- the rest of the comparisons had the default
    equal(check.raises(sort, function() error() end), nil)
    contains(check.raises(sort, function() error("no order") end), "no order")
    equal(check.raises(sort, raise), mine)
    equal(entered, 2)
    equal(#sort(function() return 0 end), 4)
    -- Of two calls that are given the same function, the one whose comparison it was.
    local raised = 0
    local once = function()
        if not mine.raised then
            mine.raised = true
            error(mine)
        end
        return 0
    end
    local function try()
        local ok, problem = pcall(sort, once)
        if not ok then
            equal(problem, mine)
            raised = raised + 1
        end
    end
    local a, b = errand.spawn(try), errand.spawn(try)
    errand.gather(a, b)
    equal(raised, 1)
end)

in_each("what_a_callback_may_not_answer_is_raised_by_its_call", function(sort)
    contains(check.raises(sort, function() return "more" end),
             "callback: an integer is wanted as its result, not string")
    contains(check.raises(sort, function() return 0.5 end),
             "callback: a number without a fraction is wanted as its result, not 0.5")
    contains(check.raises(sort, function() end), "not nil")
    contains(check.raises(sort, function() return 1 << 31 end),
             "its result must be from -2147483648 to 2147483647, not 2147483648")
    equal(#sort(function() return -(1 << 31) end), 4)
    contains(check.raises(sort, function() errand.sleep(0) end),
             "a function that foreign code calls")
end)

check.test("options_that_mean_nothing_are_refused", function()
    contains(check.raises(errand.ffi.open, "x", { promises = "pure" }), "promises")
    contains(check.raises(errand.ffi.open, "x", { memory = 1 }), "isolation = 'process'")
    contains(check.raises(errand.ffi.open, "x", { isolation = "box" }), "'thread' or 'process'")
    contains(check.raises(errand.ffi.open, "x", { isolation = "process", promise = "rpath all" }),
             "promise: 'all' is no promise; there are pure, rpath")
    contains(check.raises(errand.ffi.open, "x", { isolation = "process", want = "pid_ns" }),
             "want: 'pid_ns' is no layer; there are no_new_privs")
    contains(check.raises(errand.ffi.open, ""), "empty")
end)

process("what_a_call_leaves_in_its_process_is_there_for_another_function", function(c)
    local malloc = c:fn("malloc", "pointer (u64)")
    local copy = c:fn("strcpy", "pointer (pointer, string)")
    local length = c:fn("strlen", "u64 (pointer)")
    local free = c:fn("free", "void (pointer)")
    local address = malloc(16)
    copy(address, "kept")
    equal(length(address), 4)
    free(address)
    equal(c:sandbox().started, 1)
end, { isolation = "process", workers = 1 })

process("crashes_up_to_the_limit_that_was_set_open_no_breaker", function(c)
    for _ = 1, 12 do check.raises_code("crashed", c:fn("abort", "void ()")) end
end, { isolation = "process", workers = 1, crash_limit = 100 })

both("what_a_script_finalised_itself_is_refused", function(c)
    local labs, abs = c:fn("labs", "i64 (i64)"), c:fn("abs", "i32 (i32)")
    local buffer = errand.ffi.buffer(4)
    for _, object in ipairs { labs, buffer } do
        local collect = getmetatable(object).__gc
        collect(object)
        collect(object)
    end
    check.raises_code("misuse", labs, -1)
    check.raises_code("misuse", tostring, labs)
    check.raises_code("misuse", buffer.get, buffer)
    check.raises_code("misuse", buffer.set, buffer, 1, "")
    check.raises_code("misuse", function() return #buffer end)
    contains(check.raises(c:fn("memset", "void (out bytes, i32, u64)"), buffer, 0, 4), "buffer")
    equal(abs(-3), 3)
end)

both("a_text_with_a_zero_byte_is_no_string", function(c)
    contains(check.raises_code("inval", c:fn("strlen", "u64 (string)"), "ab\0cd").message,
        "describe it as bytes")
    equal(c:fn("strlen", "u64 (bytes)")("ab\0cd"), 2)
    check.raises(c.fn, c, "labs", "i64 (i64)\0")
end)

both("a_long_signature_leaves_room_for_what_is_wrong_with_it", function(c)
    local long = "i32 (" .. ("i32, "):rep(5000) .. "rubbish)"
    contains(check.raises_code("inval", c.fn, c, "abs", long).message, ": column ")
    contains(check.raises_code("inval", c.fn, c, "abs", ("x"):rep(5000)).message, "parameters")
end)

check.test("a_call_outside_a_run_names_errand_run", function()
    local abs = errand.ffi.open(nil):fn("abs", "i32 (i32)")
    contains(check.raises_code("misuse", abs, -1), "errand.run")
end)

check.test("a_library_serves_one_run_after_the_other", function()
    for _, tier in ipairs(tiers) do
        local c = errand.ffi.open(nil, { isolation = tier })
        local abs = c:fn("abs", "i32 (i32)")
        for i = 1, 3 do
            equal(errand.run(function() return abs(-i) end), i)
        end
    end
end)

check.finish()
