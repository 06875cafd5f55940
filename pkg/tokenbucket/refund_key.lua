-- Returns a token to one bucket in a key of its own.
--
-- KEYS: the bucket's key.
-- ARGV: see gcra.lua, for one request without an account.
local tat = redis.call("GET", KEYS[1])
tat = tat and tonumber(tat)
if not tat then
  return 0
end
tat = math.min(tat, now + key_offset) - key_interval
if tat > now then
  redis.call("SET", KEYS[1], string.format("%.17g", tat), "EX", math.ceil(tat - now))
else
  redis.call("DEL", KEYS[1])
end
return 0
