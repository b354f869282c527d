local owner, token, told, mark = ARGV[1], num(ARGV[2]), num(ARGV[3]), num(ARGV[4])
local firing, attempt, grants, started, once = num(ARGV[5]), num(ARGV[6]), ARGV[7], ARGV[8], ARGV[9]
local ttl, keep, info = num(ARGV[10]), num(ARGV[11]), ARGV[12]
local extent = 'healed'
if known and r.owner == owner then
  if r.state ~= 'run' then return answer('ended', r.mark) end
  extent = alive() and 'extended' or 'lapsed'
  r.attempt, r.mark = max(r.attempt, attempt), max(r.mark, mark)
else
  if known and num(r.token) >= token then return answer('taken', r.mark) end
  if told <= now or told > now + ttl then return answer('gone', known and r.mark or mark) end
  r.owner, r.token, r.firing, r.state, r.attempt, r.grants = owner, token, firing or '', 'run', attempt, grants
  r.mark, r.born = max(r.mark, mark, firing or 0), now
  if once == '1' then r.once = max(num(r.once) or started, started) end
  r.started, r.ended, r.code, r.info = started, '', '', info
end
r['until'], r.ttl = now + ttl, ttl
save(keep)
return answer(extent, r.mark, r['until'])
