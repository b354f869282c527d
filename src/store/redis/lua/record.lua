-- What all scripts share: the record, the clock, and the one way to write.
-- The rules are those of src/lock/rules.rs, rule by rule.
local key = KEYS[1]
local names = {'owner', 'token', 'firing', 'state', 'attempt', 'grants', 'until', 'ttl', 'mark',
  'born', 'once', 'void', 'keep', 'started', 'ended', 'code', 'info'}
local t = redis.call('TIME')
local us = t[1] * 1000000 + t[2]
local now = math.floor(us / 1000)
local before = redis.call('HMGET', key, unpack(names))
local known = before[2] and before[10]
local r = {owner = '', token = 0, firing = '', state = 'done', attempt = 0, grants = 0, ['until'] = 0, ttl = 0,
  mark = 0, born = now, once = '', void = '', keep = 0, started = 0, ended = '', code = '', info = ''}
if known then
  for i, name in ipairs(names) do r[name] = before[i] or r[name] end
end
local max, num = math.max, tonumber
local function alive()
  local left = r['until'] - now
  return r.state == 'run' and left > 0 and left <= num(r.ttl)
end
local function text(x) return type(x) == 'number' and string.format('%.0f', x) or x end
-- A script whose first write cannot grow memory may go on when memory is full.
local function expire()
  if num(r.keep) >= 1e15 then return redis.call('PERSIST', key) end
  redis.call('PEXPIRE', key, text(r.keep))
end
local function save(keep)
  r.keep = max(r.keep, keep)
  local fields = {}
  for i, name in ipairs(names) do fields[2 * i - 1], fields[2 * i] = name, text(r[name]) end
  expire()
  redis.call('HSET', key, unpack(fields))
  expire()
end
local memory
local function answer(...)
  local words = {...}
  for i, word in ipairs(words) do words[i] = text(word) end
  return {text(us), before, words, memory}
end
