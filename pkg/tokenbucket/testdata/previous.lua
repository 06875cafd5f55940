-- How the release before the hashes took tokens: one key a bucket, in redis_rate's form. KEYS: the buckets. ARGV: burst, rate,
-- period in seconds. Reply: as take.lua.
local burst, rate, period = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local emission_interval = period / rate
local burst_offset = emission_interval * burst
local time = redis.call("TIME")
local now = (time[1] - 1483228800) + (time[2] / 1000000)

local tats = redis.call("MGET", unpack(KEYS))
local written = {}
local reply = {}
for i, key in ipairs(KEYS) do
  local tat = math.max(tonumber(written[key] or tats[i] or now), now)
  if tat > now + burst_offset then
    tat = now + burst_offset
    redis.call("SET", key, tat, "EX", math.ceil(burst_offset))
    written[key] = tat
  end
  local new_tat = tat + emission_interval
  if now - (new_tat - burst_offset) < 0 then
    reply[i] = -1 - math.floor((tat - now) * 1000000 + 0.5)
  else
    if new_tat > now then
      redis.call("SET", key, new_tat, "EX", math.ceil(new_tat - now))
      written[key] = new_tat
    end
    reply[i] = math.floor((new_tat - now) * 1000000 + 0.5)
  end
end
return reply
