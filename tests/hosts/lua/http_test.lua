-- SPDX-License-Identifier: MIT
-- Goal: requests to web servers are what was meant, go where they may, and end in time.  Method: a
-- server of ten lines in the same run; real ones are in tests/tools.
local check = require "check"
local errand = require "errand"
local equal, contains = check.equal, check.contains

local function both(name, body)
    check.both(name, function()
        local good, problem = pcall(errand.http.get, "http://127.0.0.1:1/")
        if not good and problem.code == "unsupported" then error(problem, 0) end
        body()
    end)
end

both("an_url_that_is_none_is_refused", function()
    check.raises_code("inval", errand.http.get, "ftp://127.0.0.1/")
    check.raises_code("inval", errand.http.get, "")
    check.raises(errand.http.get, "http://127.0.0.1/", { headers = { A = "b\r\nC: d" } })
    for _, name in ipairs { "", "a b", "a:", ":", "\xff" } do
        contains(check.raises(errand.http.get, "http://127.0.0.1/", { headers = { [name] = "1" } }),
            "no name of a header")
    end
    check.raises(errand.http.get, "http://127.0.0.1/", { time = 1 })
    check.raises(errand.http.post, "http://127.0.0.1/")
    check.raises_code("connection_failed", errand.http.get, "http://127.0.0.1:1/")
end)

-- A web server of ten lines, so that what was sent can be looked at.
local function served(answers, body)
    local listener <close> = errand.listen("127.0.0.1:0")
    local asked = {}
    errand.spawn(pcall, function()
        for _, answer in ipairs(answers) do
            local s <close> = listener:accept()
            local line, fields, length = s:recv_line(), {}, 0
            for field in function() return s:recv_line() end do
                if field == "" then break end
                fields[#fields + 1] = field:lower()
                length = tonumber(field:lower():match("^content%-length: (%d+)")) or length
            end
            asked[#asked + 1] = { line = line, fields = table.concat(fields, "\n"),
                                  body = length > 0 and s:recv(length) or "" }
            s:send((answer:gsub("HERE", listener:address())))
        end
    end)
    body("http://" .. listener:address(), asked)
end

both("a_post_sends_its_body_and_headers_and_gets_an_answer", function()
    local answer = "HTTP/1.1 201 Created\r\nA: 1\r\na: 2\r\nContent-Length: 4\r\n\r\n\0\1\2\3"
    served({ answer }, function(url, asked)
        local response = errand.http.post(url .. "/p", "body\0", { headers = { ["X-Y"] = "z" } })
        equal(response.status, 201)
        equal(response.body, "\0\1\2\3")
        equal(response.headers.a, "1, 2")
        equal(response.fields[1].name .. response.fields[2].value, "A2")
        equal(asked[1].line, "POST /p HTTP/1.1")
        equal(asked[1].body, "body\0")
        contains(asked[1].fields, "x-y: z")
    end)
end)

-- L9
both("a_put_and_any_other_method_are_sent_as_they_were_given", function()
    local ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    local head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    local see, moved = "HTTP/1.1 303 See\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
                       "HTTP/1.1 301 Moved\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"
    served({ ok, ok, ok, head, ok, see, ok, moved, ok }, function(url, asked)
        local request = errand.http.request
        equal(errand.http.put(url .. "/a", "body\0", { headers = { ["Content-Type"] = "t" } }).body, "ok")
        equal(request { method = "DELETE", url = url .. "/a" }.status, 200)
        equal(request { method = "PATCH", url = url .. "/a", body = "p" }.status, 200)
        equal(request { method = "HEAD", url = url .. "/a" }.body, "")
        equal(request { method = "PUT", url = url .. "/a" }.status, 200)
        equal(errand.http.put { url = url .. "/a", body = "x" }.url, url .. "/b")
        equal(errand.http.put { url = url .. "/a", body = "x" }.url, url .. "/b")
        local lines = {}
        for i, seen in ipairs(asked) do
            lines[i] = seen.line:match("^%u+ /.") .. ":" .. seen.body
            equal(seen.fields:find("x-www-form-urlencoded", 1, true), nil)
        end
        equal(table.concat(lines, " "), "PUT /a:body\0 DELETE /a: PATCH /a:p HEAD /a: PUT /a: " ..
            "PUT /a:x GET /b: PUT /a:x PUT /b:x")
        contains(asked[1].fields, "content-type: t")
        contains(asked[5].fields, "content-length: 0")
    end)
    for _, method in ipairs { "", "get", "A B", "CONNECT", "G\r\nX: y" } do
        contains(check.raises_code("inval", errand.http.request, { url = "http://127.0.0.1:1/", method = method }),
            "no method")
    end
    contains(check.raises(errand.http.request, { url = "http://127.0.0.1:1/" }), "method is missing")
    contains(check.raises(errand.http.request, { url = "http://127.0.0.1:1/", method = "HEAD", body = "" }),
        "HEAD has no body")
    contains(check.raises(errand.http.put, "http://127.0.0.1:1/"), "body is missing")
    contains(check.raises(errand.http.get, "http://127.0.0.1:1/", { method = "PUT" }), "http.request")
    check.raises(errand.http.request, "http://127.0.0.1:1/")
end)

-- L9, L10
both("redirects_are_followed_without_credentials_for_others", function()
    local ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    local away = "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"
    local options = { headers = { Authorization = "secret" } }
    served({ away:format("/next"), ok }, function(url, asked)
        local response = errand.http.post(url .. "/first", "x", options)
        equal(response.body, "ok")
        equal(response.url, url .. "/next")
        equal(asked[2].line, "GET /next HTTP/1.1")
        contains(asked[2].fields, "secret")
    end)
    served({ ok }, function(other, others)
        served({ away:format(other .. "/there") }, function(url)
            equal(errand.http.get(url, options).url, other .. "/there")
            equal(others[1].fields:find("secret"), nil)
        end)
    end)
    served({ away:format("/a"), away:format("/b") }, function(url)
        check.raises_code("redirects", errand.http.get, url, { redirects = 1 })
    end)
    served({ away:format("/a") }, function(url)
        local response = errand.http.get(url, { redirects = 0 })
        equal(response.status, 302)
        equal(response.location, url .. "/a")
    end)
    served({ away:format("file:///etc/passwd") }, function(url)
        check.raises_code("redirects", errand.http.get, url)
    end)
end)

both("limits_of_a_request_hold", function()
    local large = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" .. ("x"):rep(100)
    served({ large }, function(url)
        check.raises_code("too_large", errand.http.get, url, { max = 99 })
    end)
    served({ large }, function(url)
        local pieces = errand.http.get(url, { stream = true, max = 1 })
        local text = ""
        for piece in pieces.body do text = text .. piece end
        equal(text, ("x"):rep(100))
    end)
    local listener <close> = errand.listen("127.0.0.1:0") -- and nobody accepts
    local url = "http://" .. listener:address()
    check.raises_code("timeout", errand.http.get, url, { timeout = 0.05 })
    check.raises_code("timeout", errand.timeout, 0.02, errand.http.get, url)
end)

check.finish()
