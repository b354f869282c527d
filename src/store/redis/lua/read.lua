local t = redis.call('TIME')
return {t[1], t[2], redis.call('HGETALL', KEYS[1])}
