-- Takes the tokens of many requests from buckets on one server.
--
-- KEYS: the hashes of the current and the previous generation of buckets.
-- ARGV: see gcra.lua; then "began".
local current, previous = KEYS[1], KEYS[2]

-- The seconds that a generation lasts. A generation is dropped when the second after it begins, so each of its TATs was written
-- at least one generation before. Such a TAT is past, as that of a bucket that was never used, or lies more than one generation
-- after its write: then it is in a key of its own as well.
local generation = 64

-- own_key is the key of a bucket that takes longer than a generation to refill: see Field in tokenbucket.go.
local prefixes, own_keys = {k = "rate:key:", l = "rate:account:live:", t = "rate:account:test:"}, {}
local function own_key(field)
  if not own_keys[field] then
    local prefix = prefixes[string.sub(field, 1, 1)]
    if prefix then
      own_keys[field] = prefix .. string.format("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", string.byte(field, 2, 17))
    else
      own_keys[field] = "rate:" .. string.sub(field, 2)
    end
  end
  return own_keys[field]
end

local tats = redis.call("HMGET", current, unpack(ARGV, 8))
local buckets = #tats - 1
local began = tonumber(tats[buckets + 1])
local set, n = {}, 0
local begins = not began or now >= began + generation
if begins then
  if began then
    redis.call("UNLINK", previous)
    redis.call("RENAME", current, previous)
  end
  set, n = {"began", now}, 2
elseif began > now then -- The clock was set back.
  set, n = {"began", now}, 2
end

local missing
for i = 1, buckets do
  if tats[i] then
    tats[i] = decode("<d", tats[i])
  elseif ARGV[i + 7] ~= "" then
    missing = missing or {}
    missing[#missing + 1] = i
  end
end
if missing then
  local fields, names = {}, {}
  for i, bucket in ipairs(missing) do
    fields[i] = ARGV[bucket + 7]
    names[i] = own_key(fields[i])
  end
  if not begins then
    for i, tat in ipairs(redis.call("HMGET", previous, unpack(fields))) do
      tats[missing[i]] = tat and decode("<d", tat)
    end
  end
  for i, tat in ipairs(redis.call("MGET", unpack(names))) do
    local hashed = tats[missing[i]]
    tat = tonumber(tat)
    if tat and (not hashed or tat > hashed) then
      tats[missing[i]] = tat
    end
  end
end

n = decide(tats, buckets, set, n, now + generation, function(field, tat)
  redis.call("SET", own_key(field), string.format("%.17g", tat), "EX", math.ceil(tat - now))
end)
if n > 0 then
  redis.call("HSET", current, unpack(set))
end
tats[buckets + 1] = nil
return tats
