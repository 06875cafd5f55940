-- Takes the tokens of requests of one account from buckets on a Cluster.
--
-- KEYS: the hash of the account's bucket and of its keys' buckets.
-- ARGV: see gcra.lua.
local hash = KEYS[1]
-- The most fields of an account whose keys are all in use, and some more.
local most_fields = 128

local tats = redis.call("HMGET", hash, unpack(ARGV, 8))
local buckets = #tats
for i = 1, buckets do
  if tats[i] then
    tats[i] = decode("<d", tats[i])
  end
end
local set = {}
local n = decide(tats, buckets, set, 0, math.huge, function() end)
if n > 0 then
  redis.call("HSET", hash, unpack(set))
  -- The hash lasts until all its buckets are full, and up to twice as long, so that most calls need not set its end.
  local refill = math.ceil(math.max(key_offset, account_offset))
  if redis.call("TTL", hash) < refill then
    redis.call("EXPIRE", hash, 2 * refill)
    if redis.call("HLEN", hash) > most_fields then
      local all, full = redis.call("HGETALL", hash), {}
      for i = 1, #all, 2 do
        if decode("<d", all[i + 1]) <= now then
          full[#full + 1] = all[i]
        end
      end
      if #full > 0 then
        redis.call("HDEL", hash, unpack(full))
      end
    end
  end
end
return tats
