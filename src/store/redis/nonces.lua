-- Inserts nonces that all replicas share. Returns up to which timestamp nonces may have been lost, and of each nonce 'fresh'
-- or why it was not inserted: 'used', 'lost' or 'forgotten'; none at all if the clocks are too far apart.
--
-- KEYS: the state, the nonces. ARGV: the caller's time, how far timestamps may be from that, how far clocks may be apart,
-- whether it is waived that nonces are lost, and the timestamp of each nonce. Times are seconds.
-- The nonce is kept until its timestamp has left the caller's window by the clock of Redis, whichever clock is behind.
local call = redis.call
local now, length, skew = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local waived = ARGV[4] == '1'
-- A clock of Redis that is ahead deletes nonces too early.
if math.abs(call('TIME')[1] - now) > skew then
  return { 0, {} }
end

local state = call('HMGET', KEYS[1], 'server', 'lost', 'length', 'short', 'mark')
local lost, short, mark = tonumber(state[2] or 0), tonumber(state[4] or 0), tonumber(state[5] or 0)
local function keep(field, value)
  call('HSET', KEYS[1], field, string.format('%.0f', value))
end

-- One process of Redis, as long as it is the primary: after anything else nonces may be missing, also if there is no
-- state: the first one is made when the window is opened.
local server = string.match(call('INFO', 'server'), 'run_id:(%x+)')
  .. string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
if state[1] ~= server then
  if not waived then
    lost = math.max(lost, now + length + skew)
    keep('lost', lost)
  end
  call('HSET', KEYS[1], 'server', server)
end

-- When the window grows, timestamps return into it whose nonces the shorter one has deleted: up to `mark` the `short`
-- window counts.
local before = tonumber(state[3])
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
  local timestamp = tonumber(ARGV[place + 3])
  local word
  if timestamp <= lost then
    word = 'lost'
  elseif timestamp + length < now or timestamp <= mark and timestamp + short < now then
    word = 'forgotten'
  else
    local ttl = string.format('%.0f', timestamp + length - now + 2 * skew)
    word = call('SET', KEYS[place], '', 'NX', 'EX', ttl) and 'fresh' or 'used'
  end
  words[place - 1] = word
end
return { lost, words }
