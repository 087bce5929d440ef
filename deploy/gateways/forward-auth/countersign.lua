-- Asks countersign about a request: http-request lua.countersign. Only after a 200 is the request forwarded.
local address = "http://127.0.0.1:8083/forwarded"
local of_connection = {
    connection = true, ["content-length"] = true, expect = true, ["keep-alive"] = true, ["proxy-connection"] = true,
    te = true, trailer = true, ["transfer-encoding"] = true,
}

local function refuse(txn, status, headers, body)
    local reply = txn:reply({ status = status })
    for name, values in pairs(headers) do
        if not of_connection[name] then
            for _, value in pairs(values) do reply:add_header(name, value) end
        end
    end
    reply:set_body(body or "")
    txn:done(reply)
end

-- A query without its oauth_ pairs; every other byte stays.
local function without_credentials(query)
    local kept = {}
    for pair in (query .. "&"):gmatch("([^&]*)&") do
        local name = pair:match("^[^=]*"):gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end)
        if name:sub(1, 6) ~= "oauth_" then table.insert(kept, pair) end
    end
    return table.concat(kept, "&")
end

core.register_action("countersign", { "http-req" }, function(txn)
    local headers = {}
    for name, values in pairs(txn.http:req_get_headers()) do
        if not of_connection[name] then
            headers[name] = {}
            -- Indexes count from 0.
            for index = 0, #values do table.insert(headers[name], values[index]) end
        end
    end
    headers["host"] = { "countersign" }
    headers["x-forwarded-for"] = { txn.f:src() }
    headers["x-forwarded-method"] = { txn.f:method() }
    headers["x-forwarded-proto"] = { txn.f:ssl_fc() == 1 and "https" or "http" }
    headers["x-forwarded-host"] = { txn.f:req_fhdr("host") }
    headers["x-forwarded-uri"] = { txn.f:pathq() }
    -- Signed forms and hashed bodies are verified if all of the body is in the buffer (tune.bufsize); a chunked one may go on.
    local length, body = tonumber(txn.f:req_fhdr("content-length")), txn.f:req_body()
    if length and length > 0 and body and #body == length then
        headers["content-length"] = { tostring(length) }
    else
        body = nil
    end
    local asked, response = pcall(function()
        local request = { url = address, headers = headers, timeout = 10000, body = body }
        local client = core.httpclient()
        return body and client:post(request) or not body and client:get(request)
    end)
    if not asked or not response or not response.status or response.status == 0 then
        return refuse(txn, 503, {}, "")
    end
    if response.status ~= 200 then
        return refuse(txn, response.status, response.headers, response.body)
    end
    -- A response without it is not one of countersign.
    if not response.headers["x-auth-kind"] then return refuse(txn, 503, {}, "") end
    for name, values in pairs(response.headers) do
        -- The id is the one in countersign's log.
        if name:sub(1, 7) == "x-auth-" or name == "x-request-id" then
            txn.http:req_set_header(name, values[0] or "")
        elseif name == "deprecation" or name == "sunset" or name == "link" then
            -- The end of OAuth 1.0a, which the configuration adds to the response.
            txn:set_var("txn." .. name, values[0])
        end
    end
    txn.http:req_del_header("authorization")
    -- Our cookies, where API and pages share an origin.
    local cookies = txn.f:req_fhdr("cookie")
    if cookies then
        local kept = {}
        for _, line in pairs(txn.http:req_get_headers()["cookie"]) do
            for cookie in line:gmatch("[^;]+") do
                cookie = cookie:match("^%s*(.-)%s*$")
                if not cookie:find("^countersign[=-]") and not cookie:find("^__Host%-countersign[=-]") then table.insert(kept, cookie) end
            end
        end
        txn.http:req_del_header("cookie")
        if #kept > 0 then txn.http:req_set_header("cookie", table.concat(kept, "; ")) end
    end
    local query = txn.f:query()
    if query and query ~= "" then txn.http:req_set_query(without_credentials(query)) end
end)
