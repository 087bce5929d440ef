-- The use cases of the store: each run is one atomic step.
--
-- KEYS[1] is the meta record, which all versions of the schema share. ARGV: the schema and the sealed word that the
-- caller opened the store with, the use case, its arguments. An argument that is absent is ''.
-- All other keys have the hash tag of KEYS[1], so that a Cluster keeps them on one node:
--
--   c:KEY consumer · u:ID user · a:TOKEN access token · r:TOKEN request token · s:HASH session: hashes
--   d:TOKEN the request token of a redirect's token
--   consumers, users, tokens: sorted sets of all keys; gone-users, gone-tokens: those that were removed
--   ca:KEY, ua:ID access tokens of a consumer, of a user; cr:KEY request tokens of a consumer;
--   ur:ID request tokens that a user authorized; us:ID sessions of a user
--   r-ends, s-ends: request tokens and sessions by their end; names: login name to id; costs: password costs, counted
--   orphans: removed consumers of which something is still to be deleted
--   imports: imports by parts that have not ended
--   feed: the stream of changes; the part before the hyphen of an entry's id is the position
--
-- A script that fails half-way is not rolled back, so every use case checks first and writes last.
local META = KEYS[1]
local P = 'cs:1:{store}:'
local call = redis.call

local stamp = call('HMGET', META, 'schema', 'sealed')
if ARGV[3] ~= 'begin' and (stamp[1] ~= ARGV[1] or (stamp[2] or '') ~= ARGV[2]) then
  return redis.error_reply('STAMP the store was emptied, migrated or sealed with another key since it was opened')
end

local function record(key)
  local fields = call('HGETALL', P .. key)
  return #fields > 0 and fields
end

local function exists(key)
  return call('EXISTS', P .. key) == 1
end

-- The feed. Positions are microseconds, so that one that a failover has lost is not given out again.

local function head()
  local last = call('XREVRANGE', P .. 'feed', '+', '-', 'COUNT', 1)[1]
  return last and tonumber(string.match(last[1], '^%d+'))
end

local position

local function changed(kind, key)
  if not position then
    local time = call('TIME')
    position = math.max((head() or 0) + 1, time[1] * 1000000 + time[2])
  else
    position = position + 1
  end
  local id = string.format('%.0f', position)
  call('XADD', P .. 'feed', id .. '-0', kind, key)
  return id
end

-- What several use cases do.

local function put_consumer(key, ...)
  local version = changed('consumer', key)
  call('DEL', P .. 'c:' .. key)
  call('HSET', P .. 'c:' .. key, 'version', version, ...)
  call('ZADD', P .. 'consumers', 0, key)
end

local function count_cost(cost, by)
  if cost and call('HINCRBY', P .. 'costs', cost, by) <= 0 then
    call('HDEL', P .. 'costs', cost)
  end
end

local function put_user(id, folded, ...)
  call('HSET', P .. 'u:' .. id, 'folded', folded, ...)
  call('ZADD', P .. 'users', 0, id)
  call('HSET', P .. 'names', folded, id)
  count_cost(call('HGET', P .. 'u:' .. id, 'password_cost'), 1)
end

local function put_hash(id, hash, cost, replaced)
  local user = P .. 'u:' .. id
  count_cost(call('HGET', user, 'password_cost'), -1)
  count_cost(cost, 1)
  call('HSET', user, 'password_hash', hash, 'password_cost', cost)
  if replaced == '' then call('HDEL', user, 'replaced_hash') else call('HSET', user, 'replaced_hash', replaced) end
  changed('user', id)
end

local function is_user_gone(id)
  return call('ZSCORE', P .. 'gone-users', id)
end

local function is_token_taken(token)
  return exists('a:' .. token) or call('ZSCORE', P .. 'gone-tokens', token)
end

local function put_token(token, consumer, user, ...)
  call('HSET', P .. 'a:' .. token, 'consumer', consumer, 'user', user, ...)
  call('ZADD', P .. 'tokens', 0, token)
  call('ZADD', P .. 'ca:' .. consumer, 0, token)
  call('ZADD', P .. 'ua:' .. user, 0, token)
  changed('access_token', token)
end

local function revoke(token, at)
  if call('HSETNX', P .. 'a:' .. token, 'revoked_at', at) == 1 then changed('access_token', token) end
end

-- A token of a removed consumer is gone, though it may not be deleted yet.
local function has_consumer(key)
  local consumer = call('HGET', P .. key, 'consumer')
  return consumer and exists('c:' .. consumer)
end

-- Ends the state `authorized`.
local function settle(token, state)
  local user = call('HGET', P .. 'r:' .. token, 'user')
  if user then call('SREM', P .. 'ur:' .. user, token) end
  call('HDEL', P .. 'r:' .. token, 'user', 'verifier')
  call('HSET', P .. 'r:' .. token, 'state', state)
end

local function drop_request_token(token)
  local found = call('HMGET', P .. 'r:' .. token, 'consumer', 'user', 'redirect_token')
  if found[1] then call('SREM', P .. 'cr:' .. found[1], token) end
  if found[2] then call('SREM', P .. 'ur:' .. found[2], token) end
  if found[3] then call('DEL', P .. 'd:' .. found[3]) end
  call('DEL', P .. 'r:' .. token)
  call('ZREM', P .. 'r-ends', token)
end

local function drop_session(id)
  local user = call('HGET', P .. 's:' .. id, 'user')
  if user then call('SREM', P .. 'us:' .. user, id) end
  call('DEL', P .. 's:' .. id)
  call('ZREM', P .. 's-ends', id)
end

local function end_sessions(user)
  for _, id in ipairs(call('SMEMBERS', P .. 'us:' .. user)) do drop_session(id) end
end

local function end_all_of(user, now)
  end_sessions(user)
  for _, token in ipairs(call('ZRANGE', P .. 'ua:' .. user, 0, -1)) do revoke(token, now) end
  for _, token in ipairs(call('SMEMBERS', P .. 'ur:' .. user)) do settle(token, 'voided') end
end

-- Records of an index in the order of their keys.
local function page(index, kind, after, limit, wanted)
  local found, from, limit = {}, after == '' and '-' or '(' .. after, tonumber(limit)
  repeat
    local keys = call('ZRANGE', P .. index, from, '+', 'BYLEX', 'LIMIT', 0, limit)
    for _, key in ipairs(keys) do
      if #found < limit and (not wanted or wanted(key)) then
        found[#found + 1] = { key, call('HGETALL', P .. kind .. key) }
      end
    end
    from = '(' .. (keys[#keys] or '')
  until #keys < limit or #found >= limit
  return found
end

-- Checks and changes of a prepared transaction.

local checks = {
  field = function(key, field, value) return (call('HGET', P .. key, field) or '') == value end,
  name = function(folded, id) return (call('HGET', P .. 'names', folded) or '') == id end,
  costs = function(count) return call('HLEN', P .. 'costs') == tonumber(count) end,
  count = function(set, count) return call('ZCARD', P .. set) == tonumber(count) end,
  member = function(set, key, is_in) return (call('ZSCORE', P .. set, key) and '1' or '0') == is_in end,
}

local changes = {
  consumer = put_consumer,
  user = put_user,
  token = put_token,
  revoke = revoke,
  gone_user = function(id) call('ZADD', P .. 'gone-users', 0, id) end,
  gone_token = function(token)
    call('ZADD', P .. 'gone-tokens', 0, token)
    changed('access_token', token)
  end,
  set = function(key, field, value) call('HSET', P .. key, field, value) end,
  sealed = function(word) call('HSET', META, 'sealed', word) end,
}

local use = {}

-- Opening, health, the feed.

function use.begin(schema, sealed, may_create)
  if stamp[1] then return { stamp[1], stamp[2] or '' } end
  if may_create ~= '1' then return false end
  if head() then return redis.error_reply('BROKEN the store has records and no schema') end
  call('HSET', META, 'schema', schema)
  if sealed ~= '' then call('HSET', META, 'sealed', sealed) end
  -- With the store itself, so that no failover can leave the one without the other: see nonces.lua.
  call('HSET', P .. 'nonces', 'server', string.match(call('INFO', 'server'), 'run_id:(%x+)')
    .. string.match(call('INFO', 'replication'), 'master_replid:(%x+)'))
  changed('begin', '')
  return { schema, sealed }
end

function use.ping()
  return head() and 1 or redis.error_reply('BROKEN the feed of changes is missing')
end

function use.changes_since(from, most)
  local last = head()
  if not last then return redis.error_reply('BROKEN the feed of changes is missing') end
  last = string.format('%.0f', last)
  if from == '0' or from == last then return { last, {} } end
  local told = {}
  for _, entry in ipairs(call('XRANGE', P .. 'feed', from .. '-0', '+', 'COUNT', most + 2)) do
    told[#told + 1] = { string.match(entry[1], '^%d+'), entry[2][1], entry[2][2] }
  end
  return { last, told }
end

-- Keeps the newest entries of the feed.
function use.trim(most) call('XTRIM', P .. 'feed', 'MAXLEN', '~', most) end

-- Some keys of an index, in their order.
function use.keys_behind(index, after, limit)
  return call('ZRANGE', P .. index, after == '' and '-' or '(' .. after, '+', 'BYLEX', 'LIMIT', 0, limit)
end
function use.record_command(record) changed('command', record) end
function use.record_failed_login(report) changed('failed_login', report) end

-- All keys of an index, for sealing.
function use.keys(index) return call('ZRANGE', P .. index, 0, -1) end

-- Some values of a field of the records of an index, from a cursor on, and the next cursor.
function use.scan_field(index, kind, field, cursor, count)
  local found, scanned = {}, call('ZSCAN', P .. index, cursor, 'COUNT', count)
  for place = 1, #scanned[2], 2 do
    local key = scanned[2][place]
    local value = call('HGET', P .. kind .. ':' .. key, field)
    if value then found[#found + 1] = { key, value } end
  end
  return { scanned[1], found }
end

-- Replaces values of a field that are still as they were: keys, old values, new ones.
function use.replace_field(kind, field, ...)
  local values = { ... }
  for place = 1, #values, 3 do
    local key = P .. kind .. ':' .. values[place]
    if call('HGET', key, field) == values[place + 1] then call('HSET', key, field, values[place + 2]) end
  end
end

function use.local_nonces_until()
  return call('HGET', META, 'nonces_until')
end

function use.set_local_nonces_until(latest)
  if tonumber(latest) > tonumber(call('HGET', META, 'nonces_until') or -1) then
    call('HSET', META, 'nonces_until', latest)
  end
end

function use.purge(ended, told, most)
  local tokens = call('ZRANGEBYSCORE', P .. 'r-ends', '-inf', '(' .. ended, 'LIMIT', 0, most)
  local sessions = call('ZRANGEBYSCORE', P .. 's-ends', '-inf', '(' .. ended, 'LIMIT', 0, most)
  -- The last entry stays: a reader that has seen it has missed nothing.
  call('XTRIM', P .. 'feed', 'MINID', string.format('%.0f', math.min(tonumber(told), head() or 0)))
  for _, token in ipairs(tokens) do drop_request_token(token) end
  for _, id in ipairs(sessions) do drop_session(id) end
  return #tokens < tonumber(most) and #sessions < tonumber(most) and 1 or 0
end

-- Consumers.

function use.consumer(key) return record('c:' .. key) end

function use.consumers(after, limit) return page('consumers', 'c:', after, limit) end

function use.add_consumer(key, ...)
  if exists('c:' .. key) then return 'taken' end
  if call('ZSCORE', P .. 'orphans', key) then return 'sweep' end
  put_consumer(key, ...)
  return 'added'
end

function use.replace_consumer(version, key, ...)
  if call('HGET', P .. 'c:' .. key, 'version') ~= version then return 0 end
  put_consumer(key, ...)
  return 1
end

-- What belonged to a consumer is gone with it, whether or not it is deleted yet: see `sweep`.
function use.remove_consumer(key)
  if call('DEL', P .. 'c:' .. key) == 0 then return 0 end
  call('ZREM', P .. 'consumers', key)
  call('ZADD', P .. 'orphans', 0, key)
  changed('consumer', key)
  return 1
end

-- Deletes some of what belonged to removed consumers; 1: nothing is left. A consumer may have a million tokens, and
-- others must get between.
function use.sweep(most)
  local key = call('ZRANGE', P .. 'orphans', 0, 0)[1]
  if not key then return 1 end
  local tokens = call('ZRANGE', P .. 'ca:' .. key, 0, most - 1)
  for _, token in ipairs(tokens) do
    local user = call('HGET', P .. 'a:' .. token, 'user')
    if user then call('ZREM', P .. 'ua:' .. user, token) end
    call('DEL', P .. 'a:' .. token)
    call('ZREM', P .. 'ca:' .. key, token)
    call('ZREM', P .. 'tokens', token)
    call('ZADD', P .. 'gone-tokens', 0, token)
  end
  local requests = call('SRANDMEMBER', P .. 'cr:' .. key, most)
  for _, token in ipairs(requests) do drop_request_token(token) end
  if #tokens < tonumber(most) and #requests < tonumber(most) then call('ZREM', P .. 'orphans', key) end
  return 0
end

-- Users.

function use.user(id) return record('u:' .. id) end

function use.users(after, limit) return page('users', 'u:', after, limit) end

function use.account(folded)
  local id = call('HGET', P .. 'names', folded)
  return { id and { id, call('HGETALL', P .. 'u:' .. id) }, call('HKEYS', P .. 'costs') }
end

function use.add_user(id, folded, ...)
  if exists('u:' .. id) or is_user_gone(id) or call('HEXISTS', P .. 'names', folded) == 1 then return 0 end
  put_user(id, folded, ...)
  return 1
end

-- Registers the user of an outside login, or brings the names up to date. `name` is to replace the one that is known
-- only if `is_named`; what follows is the field of the display name, if there is one.
function use.admit_user(id, is_named, name, folded, now, ...)
  if is_user_gone(id) then return { 'removed', {} } end
  local user = P .. 'u:' .. id
  local found = call('HMGET', user, 'enabled', 'name', 'folded', 'display_name')
  if found[1] == '0' then return { 'user', call('HGETALL', user) } end
  if found[1] and is_named == '0' then name, folded = found[2], found[3] end
  local holder = call('HGET', P .. 'names', folded)
  if holder and holder ~= id then return { 'name taken', {} } end
  local display_name = select(2, ...) or found[4]
  if not found[1] then
    put_user(id, folded, 'name', name, 'enabled', 1, 'created_at', now, ...)
  elseif name ~= found[2] or display_name ~= found[4] then
    call('HDEL', P .. 'names', found[3])
    call('HSET', P .. 'names', folded, id)
    call('HSET', user, 'name', name, 'folded', folded, ...)
    changed('user', id)
  end
  return { 'user', call('HGETALL', user) }
end

function use.set_password(id, hash, cost)
  if not exists('u:' .. id) then return 0 end
  put_hash(id, hash, cost, '')
  end_sessions(id)
  return 1
end

function use.set_user_enabled(id, enabled, now)
  if not exists('u:' .. id) then return 0 end
  call('HSET', P .. 'u:' .. id, 'enabled', enabled)
  if enabled == '0' then end_all_of(id, now) end
  changed('user', id)
  return 1
end

function use.remove_user(id, now)
  local found = call('HMGET', P .. 'u:' .. id, 'folded', 'password_cost')
  if not found[1] then return 0 end
  end_all_of(id, now)
  count_cost(found[2], -1)
  call('HDEL', P .. 'names', found[1])
  call('DEL', P .. 'u:' .. id)
  call('ZREM', P .. 'users', id)
  call('ZADD', P .. 'gone-users', 0, id)
  changed('user', id)
  return 1
end

-- Access tokens.

function use.access_token(token) return has_consumer('a:' .. token) and record('a:' .. token) end

function use.access_tokens(user, consumer, after, limit)
  local index = (user ~= '' and 'ua:' .. user) or (consumer ~= '' and 'ca:' .. consumer) or 'tokens'
  local function wanted(token)
    if consumer ~= '' and call('HGET', P .. 'a:' .. token, 'consumer') ~= consumer then return false end
    return has_consumer('a:' .. token)
  end
  return page(index, 'a:', after, limit, wanted)
end

function use.issue_access_token(token, consumer, user, ...)
  if not exists('c:' .. consumer) or call('HGET', P .. 'u:' .. user, 'enabled') ~= '1' or is_token_taken(token) then
    return 0
  end
  put_token(token, consumer, user, ...)
  return 1
end

function use.revoke_access_token(token, now)
  if not has_consumer('a:' .. token) then return 0 end
  revoke(token, now)
  return 1
end

function use.record_uses(...)
  local uses = { ... }
  for place = 1, #uses, 2 do
    local key, at = P .. 'a:' .. uses[place], uses[place + 1]
    local found = call('HMGET', key, 'consumer', 'last_used_at')
    if found[1] and tonumber(found[2] or -1) < tonumber(at) then call('HSET', key, 'last_used_at', at) end
  end
end

-- The token flow.

function use.request_token(name)
  local token = exists('r:' .. name) and name or call('GET', P .. 'd:' .. name)
  return token and has_consumer('r:' .. token) and { token, record('r:' .. token) }
end

function use.issue_request_token(token, consumer, expires, user, redirect, ...)
  -- The consumer may have been removed meanwhile; then this token went with it.
  if not exists('c:' .. consumer) then return end
  if exists('r:' .. token) then return redis.error_reply('TAKEN the request token is in use') end
  call('HSET', P .. 'r:' .. token, 'consumer', consumer, 'expires_at', expires, ...)
  call('SADD', P .. 'cr:' .. consumer, token)
  call('ZADD', P .. 'r-ends', expires, token)
  if user ~= '' then
    call('HSET', P .. 'r:' .. token, 'user', user)
    call('SADD', P .. 'ur:' .. user, token)
  end
  if redirect ~= '' then
    call('HSET', P .. 'r:' .. token, 'redirect_token', redirect)
    call('SET', P .. 'd:' .. redirect, token)
  end
end

-- The id of the enabled user of a session that is not ended.
local function session_user(id, now)
  local found = call('HMGET', P .. 's:' .. id, 'user', 'expires_at')
  if not found[1] or tonumber(found[2]) <= tonumber(now) then return false end
  return call('HGET', P .. 'u:' .. found[1], 'enabled') == '1' and found[1]
end

function use.decide(token, session, now, verifier, redirect, expires)
  local found = call('HMGET', P .. 'r:' .. token, 'consumer', 'state', 'expires_at')
  local user = session_user(session, now)
  if not found[1] or not user or call('HGET', P .. 'c:' .. found[1], 'enabled') ~= '1' then return 'unknown' end
  if found[2] ~= 'issued' then return 'already decided' end
  if tonumber(now) >= tonumber(found[3]) then return 'expired' end
  if verifier == '' then
    call('HSET', P .. 'r:' .. token, 'state', 'denied')
    return 'recorded'
  end
  if redirect ~= '' then
    if call('SETNX', P .. 'd:' .. redirect, token) == 0 then
      return redis.error_reply('TAKEN the token of the redirect is in use')
    end
    call('HSET', P .. 'r:' .. token, 'redirect_token', redirect)
  end
  call('HSET', P .. 'r:' .. token, 'state', 'authorized', 'user', user, 'verifier', verifier, 'expires_at', expires)
  call('SADD', P .. 'ur:' .. user, token)
  call('ZADD', P .. 'r-ends', expires, token)
  return 'recorded'
end

-- A request token and the user who authorized it.
function use.exchangeable(name)
  local found = use.request_token(name)
  local user = found and call('HGET', P .. 'r:' .. found[1], 'user')
  return found and { found[1], found[2], user and { user, call('HGETALL', P .. 'u:' .. user) } }
end

-- `seen` is the kept verifier that the caller has compared: as long as it is there, the token waits for its exchange.

function use.count_wrong_verifier(token, seen, most)
  if call('HGET', P .. 'r:' .. token, 'verifier') ~= seen then return 0 end
  if call('HINCRBY', P .. 'r:' .. token, 'wrong_verifiers', 1) >= tonumber(most) then settle(token, 'voided') end
  return 1
end

function use.exchange(token, seen, access_token, consumer, user, ...)
  if call('HGET', P .. 'r:' .. token, 'verifier') ~= seen or call('HGET', P .. 'u:' .. user, 'enabled') ~= '1' then
    return 0
  end
  if is_token_taken(access_token) then return redis.error_reply('TAKEN the new access token is in use') end
  -- The token of the redirect stays, so that a second exchange by it is told that the first has used it up.
  settle(token, 'exchanged')
  put_token(access_token, consumer, user, ...)
  return 1
end

-- Sessions.

function use.open_session(id, user, created, expires, seen, is_changed, hash, cost, replaced)
  local found = call('HMGET', P .. 'u:' .. user, 'enabled', 'password_hash')
  if found[1] ~= '1' then return 'refused' end
  if (found[2] or '') ~= seen then return 'again' end
  if exists('s:' .. id) then return redis.error_reply('TAKEN the session is there already') end
  if is_changed == '1' then
    end_sessions(user)
    replaced = ''
  end
  if hash ~= '' then put_hash(user, hash, cost, replaced) end
  call('HSET', P .. 's:' .. id, 'user', user, 'created_at', created, 'expires_at', expires)
  call('SADD', P .. 'us:' .. user, id)
  call('ZADD', P .. 's-ends', expires, id)
  return 'opened'
end

function use.session(id, now)
  local user = session_user(id, now)
  return user and { user, call('HGETALL', P .. 's:' .. id), call('HGETALL', P .. 'u:' .. user) }
end

function use.close_session(id) drop_session(id) end

function use.open_sessions(user, now)
  local count, since = 0, false
  for _, id in ipairs(call('SMEMBERS', P .. 'us:' .. user)) do
    local found = call('HMGET', P .. 's:' .. id, 'created_at', 'expires_at')
    if found[1] and tonumber(found[2]) > tonumber(now) then
      count = count + 1
      if not since or tonumber(found[1]) < tonumber(since) then since = found[1] end
    end
  end
  return { count, since }
end

function use.close_sessions(user) end_sessions(user) end

-- Transfer.

-- Imports by parts that have begun and not ended, each by the digest of its records: how many they are, and the time.

function use.begin_import(digest, count, now) call('HSETNX', P .. 'imports', digest, count .. ' ' .. now) end

function use.end_import(digest) call('HDEL', P .. 'imports', digest) end

function use.unended_imports()
  local found = call('HVALS', P .. 'imports')
  for place, value in ipairs(found) do found[place] = { string.match(value, '^(%d+) (%d+)$') } end
  return found
end

-- Everything that a prepared transaction depends on: whatever stands under these keys.
function use.look(...)
  local found = {}
  for place, key in ipairs({ ... }) do
    local kind, name = string.match(key, '^(.-):(.*)$')
    if kind == 'name' then
      found[place] = call('HGET', P .. 'names', name)
    elseif kind == 'gone-users' or kind == 'gone-tokens' then
      found[place] = call('ZSCORE', P .. kind, name)
    else
      found[place] = record(key)
    end
  end
  return found
end

-- Puts steps of a prepared transaction aside; they are forgotten if it is never made.
function use.stage(staged, ...)
  call('RPUSH', P .. 'staged:' .. staged, ...)
  call('EXPIRE', P .. 'staged:' .. staged, 3600)
end

-- Makes the changes of a prepared transaction, or none if a check fails.
function use.commit(staged, count)
  local key = P .. 'staged:' .. staged
  if call('LLEN', key) ~= tonumber(count) then
    return redis.error_reply('STAGED the prepared transaction is incomplete')
  end
  local function each(steps, step)
    for from = 0, count - 1, 1000 do
      for _, packed in ipairs(call('LRANGE', key, from, from + 999)) do
        local parts = cmsgpack.unpack(packed)
        local run = steps[parts[1]]
        if run and step(run, parts) == false then return false end
      end
    end
    return true
  end
  if not each(checks, function(check, parts) return check(unpack(parts, 2)) end) then
    call('UNLINK', key)
    return 0
  end
  each(changes, function(change, parts) change(unpack(parts, 2)) end)
  call('UNLINK', key)
  return 1
end

local run = use[ARGV[3]]
if not run then return redis.error_reply('BROKEN no such use case') end
return run(unpack(ARGV, 4))
