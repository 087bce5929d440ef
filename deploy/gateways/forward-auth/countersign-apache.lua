-- Asks countersign about a request: LuaHookAccessChecker. Only after a 200 is the request forwarded.
local http, ltn12 = require "socket.http", require "ltn12"
http.TIMEOUT = 10
local address = "http://127.0.0.1:8083/forwarded"
local of_connection = {
    connection = true, ["content-length"] = true, expect = true, ["keep-alive"] = true, ["proxy-connection"] = true,
    te = true, trailer = true, ["transfer-encoding"] = true,
}
-- Fields that would undo the decision or forge an identity: the identity headers, and the default of upstream.drop_headers.
local dropped, beginnings = {}, {}
for name in ([[
    x-rewrite-url x-http-method x-http-method-override x-method-override x-http-host-override x-host x-sendfile-type
    script-name x-script-name path-info x-path-info request-uri x-scheme x-url-scheme front-end-https client-ip
    x-client-ip x-cluster-client-ip x-originating-ip x-proxyuser-ip proxy-client-ip http-client-ip fly-client-ip
    x-azure-clientip x-azure-socketip x-vercel-forwarded-for x-user x-user-id x-user-name x-user-email x-username
    x-userinfo x-endpoint-api-userinfo x-apigateway-api-userinfo x-id-token x-jwt-assertion
    x-anonymous-consumer cas-user x-client-dn x-client-verify forwarded proxy
]]):gmatch("%S+") do dropped[name] = true end
for name in ([[
    x-original- x-envoy- x-middleware- x-accel- x-forwarded forwarded- x-real- wl-proxy- http-x- http-forwarded
    true-client- cf-connecting- cf-access- cf-pseudo- cf-cert- cf-client-cert- fastly-client- x-nf-client- x-appengine- remote- x-remote-
    x-webauth- x-auth-request- x-authenticated- x-authentik- x-consumer- x-credential- x-pomerium- x-vouch- tailscale-user-
    x-ms-client-principal x-ms-token- x-goog-authenticated-user- x-goog-iap- x-amzn-oidc- x-amzn-mtls- oidc- shib- sm-
    oam- iv- x-ssl- ssl- sslclient x-tls- x-client-cert client-cert x-arr- x-auth-
]]):gmatch("%S+") do table.insert(beginnings, name) end

local function is_dropped(name)
    -- Other spellings of a name that an API may take for it.
    if dropped[name] or name:find("[^a-z0-9-]") then return true end
    for _, beginning in ipairs(beginnings) do
        if name:sub(1, #beginning) == beginning then return true end
    end
    return false
end

function check(r)
    local query, raw = r.args or "", r.unparsed_uri
    -- Apache would forward "//x" and "/./x" as "/x".
    if raw:sub(1, 1) ~= "/" or raw:find("^/%.?/") or raw:find("#", 1, true) then return 400 end
    -- Otherwise the API would get credentials in the query.
    for pair in query:gmatch("[^&]+") do
        local name = pair:match("^[^=]*"):gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end)
        if name:sub(1, 6) == "oauth_" then return 400 end
    end
    local headers, removed = {}, {}
    for name, value in pairs(r:headers_in_table()) do
        local folded = name:lower()
        if is_dropped(folded) then
            table.insert(removed, name)
        elseif not of_connection[folded] then
            headers[folded] = value
        end
    end
    for _, name in ipairs(removed) do r.headers_in[name] = nil end
    headers["host"] = "countersign"
    headers["x-forwarded-for"] = r.useragent_ip
    headers["x-forwarded-method"] = r.method
    headers["x-forwarded-proto"] = r.is_https and "https" or "http"
    headers["x-forwarded-host"] = r.headers_in["Host"]
    headers["x-forwarded-uri"] = raw
    local body = {}
    local asked, status, told = http.request({ url = address, headers = headers, sink = ltn12.sink.table(body), redirect = false })
    if not asked then return 503 end
    -- Of a response that countersign permits, these announce the end of OAuth 1.0a.
    local answered = { "deprecation", "sunset", "link" }
    if status ~= 200 then
        answered = { "www-authenticate", "allow", "retry-after", "location", "deprecation", "sunset", "link" }
    end
    for _, name in ipairs(answered) do
        if told[name] then r.err_headers_out[name] = told[name] end
    end
    if status ~= 200 then
        if status ~= 303 then r:custom_response(status, table.concat(body)) end
        return status
    end
    -- A response without it is not one of countersign.
    if not told["x-auth-kind"] then return 503 end
    for name, value in pairs(told) do
        -- The id is the one in countersign's log.
        if name:sub(1, 7) == "x-auth-" or name == "x-request-id" then r.headers_in[name] = value end
    end
    r.headers_in["Authorization"] = nil
    -- It names fields that are removed on the way, possibly those that are set here.
    local upgrade = r.headers_in["Upgrade"]
    r.headers_in["Connection"] = upgrade and upgrade:lower() == "websocket" and "Upgrade" or nil
    r.headers_in["X-Forwarded-Proto"] = headers["x-forwarded-proto"]
    -- Our cookie, where API and pages share an origin.
    local cookies = r.headers_in["Cookie"]
    if cookies then
        local kept = {}
        -- Two fields are one here, with a comma between them.
        cookies = cookies:gsub(",%s*(countersign[=-])", "; %1"):gsub(",%s*(__Host%-countersign[=-])", "; %1")
        for cookie in cookies:gmatch("[^;]+") do
            cookie = cookie:match("^%s*(.-)%s*$")
            if not cookie:find("^countersign[=-]") and not cookie:find("^__Host%-countersign[=-]") then table.insert(kept, cookie) end
        end
        r.headers_in["Cookie"] = #kept > 0 and table.concat(kept, "; ") or nil
    end
    return apache2.OK
end
