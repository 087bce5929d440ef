-- Inserts nonces that all replicas share. Returns the timestamp up to which nonces may have been lost, the server that
-- records, the number of runs, and for each nonce 'fresh' or why it was not inserted: 'used', 'lost' or 'forgotten'. It
-- does nothing for the nonces if the clocks are too far apart.
--
-- KEYS: the state, the nonces. ARGV: the caller's time, how far timestamps may be from that, how far clocks may be
-- apart, whether lost nonces are waived, the server and the number of runs in the caller's last reply, whether the
-- settings keep every write at a power loss, and the timestamp of each nonce. Times are seconds. A nonce is kept until
-- its timestamp has left the caller's window by the clock of Redis, whichever clock is slow.
local call = redis.call
local now, length, skew = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local waived, known, known_runs, durable = ARGV[4] == '1', ARGV[5], tonumber(ARGV[6]), ARGV[7] == '1'
local names = { 'server', 'lost', 'length', 'short', 'mark', 'time', 'runs', 'exposed', 'before', 'runs_before', 'evicted' }
local state = {}
for place, value in ipairs(call('HMGET', KEYS[1], unpack(names))) do
  state[names[place]] = value
end
local function number(name)
  return tonumber(state[name] or 0)
end
local function keep(field, value)
  call('HSET', KEYS[1], field, string.format('%.0f', value))
end

-- A clock of Redis that is ahead deletes nonces too early, also if it is right again when nonces are inserted next. With
-- a clock that was never more than `skew` from the callers', no timestamp of the window is affected.
local time = tonumber(call('TIME')[1])
local latest = math.max(time, number('time'))
if waived then
  latest = time
end
if latest ~= number('time') then
  keep('time', latest)
end
if math.abs(time - now) > skew then
  return { 0, '', 0, {} }
end

-- One process of Redis, as long as it is the primary. After anything else nonces may be missing, also if there is no
-- state: the first one is made when the window is opened.
local replication = call('INFO', 'replication')
local server = string.match(call('INFO', 'server'), 'run_id:(%x+)') .. string.match(replication, 'master_replid:(%x+)')
local runs = number('runs')
-- Whether another server may have had this dataset, or this one may lose a write at a power loss.
local exposed = not durable
  or string.find(replication, 'connected_slaves:0', 1, true) == nil
  or string.find(replication, 'repl_backlog_active:0', 1, true) == nil
  or string.find(replication, 'master_replid2:0+[^%x]') == nil
local is_lost = false
if state.server ~= server then
  -- The same server with the same dataset was only restarted: the caller knows how many runs there were at least.
  local is_same = state.server and known == state.server and known_runs <= runs
  is_lost = not (is_same and state.exposed == '0' and not exposed)
  call('HSET', KEYS[1], 'server', server, 'before', state.server or '', 'runs_before', runs, 'exposed', exposed and 1 or 0)
elseif known ~= '' and known ~= server then
  -- Another caller found the restart and could not know of the last runs.
  is_lost = not (known == state.before and known_runs <= number('runs_before'))
end
-- A nonce that Redis has evicted could be used again. Each process of Redis counts from 0; CONFIG RESETSTAT does too.
local evicted = tonumber(string.match(call('INFO', 'stats'), 'evicted_keys:(%d+)'))
if evicted ~= (state.server == server and number('evicted') or 0) then
  is_lost = true
end
if evicted ~= number('evicted') then
  keep('evicted', evicted)
end
if exposed and state.exposed ~= '1' then
  keep('exposed', 1)
end
local lost, short, mark = number('lost'), number('short'), number('mark')
if is_lost and not waived then
  -- A replica that was ahead has accepted timestamps that were ahead.
  lost = math.max(lost, math.max(now, time) + length + skew)
  keep('lost', lost)
end
runs = runs + 1
keep('runs', runs)

-- When the window grows, timestamps return into it whose nonces the shorter one has deleted: the `short` window counts
-- up to `mark`.
local before = state.length and tonumber(state.length)
if before ~= length then
  if before and before < length then
    short = mark + length > now and math.min(short, before) or before
    mark = now + before + 2 * skew
    keep('short', short)
    keep('mark', mark)
  end
  keep('length', length)
end

if waived then
  lost = 0
end
local words = {}
for place = 2, #KEYS do
  local timestamp = tonumber(ARGV[place + 6])
  local reach = timestamp <= mark and short or length
  local word
  if timestamp <= lost then
    word = 'lost'
  elseif timestamp + math.min(reach, length) < now then
    word = 'forgotten'
  elseif timestamp + reach + skew <= latest then
    -- Its nonce may have expired when the clock was ahead.
    word = 'lost'
  else
    local ttl = string.format('%.0f', timestamp + length - now + 2 * skew)
    word = call('SET', KEYS[place], '', 'NX', 'EX', ttl) and 'fresh' or 'used'
  end
  words[place - 1] = word
end
return { math.max(lost, latest - length - skew), server, runs, words }
