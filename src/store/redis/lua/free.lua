local owner, keep, outcome, token, mark = ARGV[1], num(ARGV[2]), ARGV[3], num(ARGV[4]), num(ARGV[5])
local firing, attempt, grants, started, once = num(ARGV[6]), num(ARGV[7]), ARGV[8], ARGV[9], ARGV[10]
local code, info = ARGV[11], ARGV[12]
local run = outcome ~= ''
local unstarted = not run or outcome == 'unstarted'
local requeued = outcome ~= 'done' and outcome ~= 'failed'
-- True if that is new.
local function refuse_from_now_on()
  if string.find(r.void, owner, 1, true) then return false end
  local void = {}
  for word in string.gmatch(r.void, '%x+') do void[#void + 1] = word end
  if #void == 8 then table.remove(void, 1) end
  void[#void + 1] = owner
  r.void = table.concat(void, ' ')
  return true
end
local function finish()
  r.state = requeued and 'requeued' or outcome
  r['until'], r.ended, r.code = now, now, code
  if run then r.attempt, r.mark = attempt, max(r.mark, mark) end
  if unstarted then
    r.attempt, r.grants = max(r.attempt - 1, 0), max(r.grants - 1, 0)
    if num(r.once) == num(r.started) then r.once = '' end
  end
  if r.firing == '' or requeued then refuse_from_now_on() end
end
if known and r.owner == owner then
  if r.state ~= 'run' then return answer('already') end
  finish()
  save(keep)
  return answer('freed')
end
if not run then
  refuse_from_now_on()
  save(keep)
  return answer('voided')
end
if not known then
  r.owner, r.token, r.firing, r.grants = owner, token, firing or '', grants
  r.mark, r.started, r.info = max(mark, firing or 0), started, info
  if once == '1' then r.once = started end
  finish()
  save(keep)
  return answer('alien')
end
local raised = num(r.token) < token
if raised then
  r.token, r.mark = token, max(r.mark, mark, firing or 0)
  if once == '1' and not unstarted then r.once = max(num(r.once) or started, started) end
end
local refused = refuse_from_now_on()
if raised or refused then save(0) end
return answer('alien')
