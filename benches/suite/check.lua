-- The check of an OAuth 1.0a request as it is commonly written for nginx: HMAC-SHA1, consumers, tokens and nonces in
-- shared dictionaries. countersign is compared with it; it does the same checks for GET and no more.

local function refuse(problem)
  ngx.status = 401
  ngx.header["WWW-Authenticate"] = 'OAuth realm="api", oauth_problem="' .. problem .. '"'
  ngx.say("oauth_problem=" .. problem)
  return ngx.exit(401)
end

local function encode(text)
  return (text:gsub("[^%w%-%._~]", function(byte) return string.format("%%%02X", byte:byte()) end))
end

local header = ngx.var.http_authorization
if not header or header:sub(1, 6) ~= "OAuth " then
  return refuse("parameter_absent")
end

local oauth, pairs_ = {}, {}
for name, value in header:sub(7):gmatch('([%w_]+)="([^"]*)"') do
  if name ~= "realm" then
    value = ngx.unescape_uri(value:gsub("+", "%%2B"))
    if oauth[name] then
      return refuse("parameter_rejected")
    end
    oauth[name] = value
    if name ~= "oauth_signature" then
      pairs_[#pairs_ + 1] = encode(name) .. "=" .. encode(value)
    end
  end
end

for name, value in pairs(ngx.req.get_uri_args(100)) do
  for _, one in ipairs(type(value) == "table" and value or { value }) do
    pairs_[#pairs_ + 1] = encode(name) .. "=" .. encode(one == true and "" or one)
  end
end

for _, name in ipairs({ "oauth_consumer_key", "oauth_token", "oauth_signature_method", "oauth_timestamp", "oauth_nonce", "oauth_signature" }) do
  if not oauth[name] then
    return refuse("parameter_absent")
  end
end
if oauth.oauth_signature_method ~= "HMAC-SHA1" then
  return refuse("signature_method_rejected")
end
local timestamp = tonumber(oauth.oauth_timestamp)
if not timestamp or math.abs(ngx.time() - timestamp) > 300 then
  return refuse("timestamp_refused")
end

local credentials = ngx.shared.credentials
local secret = credentials:get("c:" .. oauth.oauth_consumer_key)
if not secret then
  return refuse("consumer_key_unknown")
end
local token = credentials:get("t:" .. oauth.oauth_token)
if not token then
  return refuse("token_rejected")
end
local token_secret, user, owner = token:match("^(%S+) (%S+) (%S+)$")
if owner ~= oauth.oauth_consumer_key then
  return refuse("token_rejected")
end

table.sort(pairs_)
local path = ngx.var.request_uri:match("^[^?]*")
local uri = ngx.var.scheme .. "://" .. ngx.var.host:lower() .. path
local base = ngx.req.get_method() .. "&" .. encode(uri) .. "&" .. encode(table.concat(pairs_, "&"))
local key = encode(secret) .. "&" .. encode(token_secret)
local expected = ngx.encode_base64(ngx.hmac_sha1(key, base))
if expected ~= oauth.oauth_signature then
  return refuse("signature_invalid")
end

local nonce = oauth.oauth_consumer_key .. "&" .. oauth.oauth_token .. "&" .. oauth.oauth_timestamp .. "&" .. oauth.oauth_nonce
if not ngx.shared.nonces:add(nonce, true, 600) then
  return refuse("nonce_used")
end

ngx.req.clear_header("Authorization")
ngx.req.set_header("X-Auth-User", user)
ngx.req.set_header("X-Auth-Consumer", oauth.oauth_consumer_key)
ngx.req.set_header("X-Auth-Permissions", "members.read")
ngx.req.set_header("X-Auth-Kind", "consumer")
