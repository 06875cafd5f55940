-- Takes a token from one bucket in a key of its own, which redis_rate reads and writes too.
--
-- KEYS: the bucket's key.
-- ARGV: see gcra.lua, for one request without an account.
local tat = redis.call("GET", KEYS[1])
local tats = {tat and tonumber(tat), false}
decide(tats, 2, {}, 0, now, function(_, tat)
  redis.call("SET", KEYS[1], string.format("%.17g", tat), "EX", math.ceil(tat - now))
end)
return tats
