-- What both forms of buckets share: the arithmetic of redis_rate (GCRA). A bucket's state is its theoretical arrival time (TAT),
-- at which it is full again, in seconds since 2017.
--
-- ARGV: burst, rate and period in seconds of the keys' buckets, the same of the accounts', whose rate is 0 for no limit; the tokens
-- that each request takes of its account; then for each request the field of its key's bucket and of its account's, which is empty
-- for none and for that of the request before. Equal fields of keys are neighbours.
local key_interval, account_cost = ARGV[3] / ARGV[2], 0
local key_offset, account_offset = key_interval * ARGV[1], 0
if ARGV[5] ~= "0" then
  local account_interval = ARGV[6] / ARGV[5]
  account_offset, account_cost = account_interval * ARGV[4], account_interval * ARGV[7]
end
-- A double holds seconds since 2017 to the microsecond until 2048.
local time = redis.call("TIME")
local now = (time[1] - 1483228800) + (time[2] / 1000000)

-- miniredis has no struct, and both refuse to read a global that is not there.
local struct = rawget(_G, "struct")
local encode = struct and struct.pack or function(_, tat) return string.format("%.17g", tat) end
local decode = struct and struct.unpack or function(_, tat) return tonumber(tat) end
local floor, args = math.floor, ARGV

-- decide takes the tokens of each request from both of its buckets, or none. It replaces the TATs by the reply: for each bucket the
-- microseconds until it is full, or -1 minus these where it refuses. It adds the buckets that changed to the n words of set, and
-- returns their number. It calls keep with a changed TAT that is later than bound, or was ahead.
local function decide(tats, buckets, set, n, bound, keep)
  local last_key, last_tat, account, account_tat, account_changed, account_ahead
  account_tat = now
  for i = 1, buckets, 2 do
    local key, tat = args[i + 7], tats[i]
    if key == last_key then
      tat = last_tat
    end
    if not tat or tat < now then
      tat = now
    end
    if args[i + 8] ~= "" then
      account, account_tat, account_changed, account_ahead = args[i + 8], tats[i + 1], false, false
      if not account_tat or account_tat < now then
        account_tat = now
      end
    end
    -- A rule with a longer period or a lower rate, or a clock that was ahead, leaves more than a whole bucket to refill. The bucket
    -- counts as empty, as by Rule.Clamp.
    local ahead = tat > now + key_offset
    if ahead then
      tat = now + key_offset
    end
    if account_tat > now + account_offset then
      account_tat, account_changed, account_ahead = now + account_offset, true, true
    end
    local new_tat, new_account_tat = tat + key_interval, account_tat + account_cost
    local key_allows, account_allows = now - (new_tat - key_offset) >= 0, now - (new_account_tat - account_offset) >= 0
    local allowed = key_allows and account_allows
    if allowed then
      tat, account_tat, account_changed = new_tat, new_account_tat, true
    end
    if allowed or ahead then
      set[n + 1], set[n + 2], n = key, encode("<d", tat), n + 2
      if tat > bound or ahead then
        keep(key, tat)
      end
    end
    if account_changed and account and args[i + 10] ~= "" then
      set[n + 1], set[n + 2], n = account, encode("<d", account_tat), n + 2
      if account_tat > bound or account_ahead then
        keep(account, account_tat)
      end
    end
    last_key, last_tat = key, tat
    -- Redis replies with the whole part of a number.
    tats[i], tats[i + 1] = (tat - now) * 1000000 + 0.5, (account_tat - now) * 1000000 + 0.5
    if not key_allows then
      tats[i] = -1 - floor(tats[i])
    end
    if not account_allows then
      tats[i + 1] = -1 - floor(tats[i + 1])
    end
  end
  return n
end
