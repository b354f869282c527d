if ARGV[10] == '1' then
  local info = redis.pcall('INFO', 'memory')
  if type(info) == 'string' then memory = info end
end
local owner, ttl, keep, info = ARGV[1], num(ARGV[2]), num(ARGV[3]), ARGV[4]
local at, deadline, queue, rerun, per = num(ARGV[5]), num(ARGV[6]), ARGV[7] == 'queue', ARGV[8] == 'rerun', num(ARGV[9])
local function granted() return answer('granted', r.token, r.attempt, r.grants, r['until'], r.started, r.mark) end
if known then
  if string.find(r.void, owner, 1, true) then return answer('void') end
  if r.owner == owner then
    if r.state ~= 'run' then return answer('stale') end
    r['until'], r.ttl = now + ttl, ttl
    save(keep)
    return granted()
  end
end
if at and at > now + 50 then return answer('early', at - now) end
local settled = false
if known and num(r.mark) > now + 10800000 then r.mark, settled = now, true end
if known and r.state == 'run' and r['until'] - now > num(r.ttl) then r['until'], settled = now + r.ttl, true end
local function refuse(...)
  if settled then save(0) end
  return answer(...)
end
local late, again, held = at and now - at, false, alive()
local function unsure() return not rerun and late > 2000 and (not known or at <= r.born + 50) end
if at and not known then
  if late > deadline then return answer('late', late) end
  if unsure() then return answer('unsure') end
elseif at then
  local after_run = now - max(at, r['until'])
  local mine = num(r.firing) == at
  if mine and r.state == 'requeued' then
    if after_run > deadline then return refuse('late', late) end
    if unsure() then return refuse('unsure') end
    again = true
  elseif mine and r.state == 'run' and not held then
    again = rerun and now - r['until'] <= deadline and num(r.grants) < 3
    if not again then return refuse('orphaned') end
  elseif at <= num(r.mark) then
    return refuse(mine and held and 'running' or 'done')
  elseif (queue and after_run or late) > deadline then
    return refuse('late', late)
  elseif unsure() then
    return refuse('unsure')
  elseif held then
    if r.firing == '' or late >= 0 and queue then return refuse('busy') end
    if late < 0 then return refuse('early', -late) end
    r.mark = max(r.mark, at)
    save(keep)
    return answer('busy')
  end
elseif known then
  if per and r.once ~= '' and math.abs(now - r.once) * 4 < per * 3 then return refuse('done') end
  if held then return refuse('busy') end
end
if not again then r.attempt, r.grants = 0, 0 end
r.owner, r.token, r.firing, r.state = owner, max(r.token + 1, us), at or '', 'run'
r.attempt, r.grants, r['until'], r.ttl = r.attempt + 1, r.grants + 1, now + ttl, ttl
if at then r.mark = max(r.mark, at) end
if per then r.once = now end
r.started, r.ended, r.code, r.info = now, '', '', info
save(keep)
return granted()
