-- How the release before accounts' buckets took tokens.
-- Takes one token from each of many buckets under one rule, by the arithmetic of redis_rate (GCRA). A bucket's state is its
-- theoretical arrival time (TAT), at which it is full again, in seconds since 2017.
--
-- KEYS: the hashes of the current and the previous generation of buckets.
-- ARGV: burst, rate, period in seconds, the fields of the buckets, "began", "mirror_until". Equal fields are neighbours.
-- Reply: for each bucket the microseconds until it is full, or -1 minus these where the request is refused.
local burst, rate, period = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local emission_interval = period / rate
local burst_offset = emission_interval * burst
-- A double holds seconds since 2017 to the microsecond until 2048.
local time = redis.call("TIME")
local now = (time[1] - 1483228800) + (time[2] / 1000000)
local current, previous = KEYS[1], KEYS[2]

-- The seconds that a generation lasts. A generation is dropped when the second after it begins, so each of its TATs was written
-- at least one generation before. Such a TAT is past, as that of a bucket that was never used, or lies more than one generation
-- after its write: then it is in a key of its own as well.
local generation = 64
-- The seconds for which all buckets are in keys of their own as well, after a gateway of a release that has only those took from one.
local mirror_for = 600
-- This release writes those keys with a sign, redis_rate writes none.
local signed = "%+.17g"

-- miniredis has no struct, and both refuse to read a global that is not there.
local struct = rawget(_G, "struct")
local encode = struct and struct.pack or function(_, tat) return string.format("%.17g", tat) end
local decode = struct and struct.unpack or function(_, tat) return tonumber(tat) end

-- key is redis_rate's key of a bucket: see Field in tokenbucket.go.
local keys = {}
local function key(field)
  if not keys[field] then
    keys[field] = "rate:" .. string.sub(field, 2)
    if string.byte(field) == 107 then
      keys[field] = string.format("rate:key:%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", string.byte(field, 2, 17))
    end
  end
  return keys[field]
end

local tats = redis.call("HMGET", current, unpack(ARGV, 4))
local buckets = #tats - 2
local began, mirror_until = tonumber(tats[buckets + 1]), tonumber(tats[buckets + 2]) or 0
local set, n = {}, 0
local begins = not began or now >= began + generation
if begins then
  if began then
    redis.call("UNLINK", previous)
    redis.call("RENAME", current, previous)
  else
    mirror_until = now + mirror_for
  end
  set, n = {"began", now, "mirror_until", mirror_until}, 4
elseif began > now then -- The clock was set back.
  set, n = {"began", now}, 2
end
local mirrored = mirror_until > now

local missing
for i = 1, buckets do
  if tats[i] then
    tats[i] = decode("<d", tats[i])
  end
  if mirrored or not tats[i] then
    missing = missing or {}
    missing[#missing + 1] = i
  end
end
if missing then
  local fields, names = {}, {}
  for i, bucket in ipairs(missing) do
    fields[i] = ARGV[bucket + 3]
    names[i] = key(fields[i])
  end
  if not begins then
    for i, tat in ipairs(redis.call("HMGET", previous, unpack(fields))) do
      if tat and not tats[missing[i]] then
        tats[missing[i]] = decode("<d", tat)
      end
    end
  end
  for i, tat in ipairs(redis.call("MGET", unpack(names))) do
    if tat and string.byte(tat) ~= 43 then
      mirrored = true
      set[n + 1], set[n + 2], n = "mirror_until", now + mirror_for, n + 2
    end
    local hashed = tats[missing[i]]
    tat = tonumber(tat)
    if tat and (not hashed or tat > hashed) then
      tats[missing[i]] = tat
    end
  end
end

local last, last_tat
for i = 1, buckets do
  local field, tat = ARGV[i + 3], tats[i]
  if field == last then
    tat = last_tat
  end
  if not tat or tat < now then
    tat = now
  end
  -- Only a clock that was ahead leaves more than a whole bucket to refill. The bucket counts as empty.
  local ahead = tat > now + burst_offset
  if ahead then
    tat = now + burst_offset
  end
  local new_tat = tat + emission_interval
  local allowed = now - (new_tat - burst_offset) >= 0
  if allowed then
    tat = new_tat
  end
  if allowed or ahead then
    set[n + 1] = field
    set[n + 2] = encode("<d", tat)
    n = n + 2
    if tat > now and (mirrored or ahead or tat > now + generation) then
      redis.call("SET", key(field), string.format(signed, tat), "EX", math.ceil(tat - now))
    end
  end
  last, last_tat = field, tat
  tats[i] = math.floor((tat - now) * 1000000 + 0.5)
  if not allowed then
    tats[i] = -1 - tats[i]
  end
end
if n > 0 then
  redis.call("HSET", current, unpack(set))
end
tats[buckets + 1] = nil
return tats
