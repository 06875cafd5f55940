package limit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"intents.internal/gateway/limit"
)

// rendered is all that a reply may tell of a refusal.
func rendered(d limit.Decision) string {
	up := func(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
	return fmt.Sprint(d.Allowed, d.Cached, d.ByAccount(), up(d.Wait(), time.Millisecond), up(d.Wait(), time.Second), " ",
		d.Rule, d.Remaining, up(d.ResetAfter, time.Second), " ", d.Account.Rule, d.Account.Remaining, up(d.Account.ResetAfter, time.Second))
}

// At any time a kept reply is the one that a new decision would get, and there is none once the refusal has ended.
func TestRefusals_Kept(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	rules := []redis_rate.Limit{redis_rate.PerMinute(50), redis_rate.PerSecond(4), redis_rate.PerSecond(1000), redis_rate.PerHour(2), {Rate: 7, Burst: 20, Period: 7 * time.Minute}}
	kept, ended := 0, 0
	const quantum = 10 * time.Microsecond // so that tests often meet the moment of a change
	upTo := func(most time.Duration) time.Duration {
		return quantum * time.Duration(random.Int64N(int64(most/quantum)))
	}
	for range 3000 {
		now := time.Unix(1_800_000_000, 0)
		askedAt, rtt := now.Add(-upTo(6*time.Second)), upTo(3*time.Millisecond)
		if random.IntN(2) == 0 {
			askedAt = now.Add(-5*time.Second + upTo(3*time.Millisecond)) // the refusal is about to be forgotten
		}
		quota := func(rule redis_rate.Limit) limit.Quota {
			d := upTo(rule.Period * time.Duration(rule.Burst) / time.Duration(rule.Rate) * 5 / 4) // more than a bucket has since its limit was lowered
			if random.IntN(2) == 0 {
				d = now.Add(d).Truncate(time.Second).Sub(askedAt) + upTo(3*time.Millisecond) // a second is about to end
			}
			return limit.Quota{Rule: rule, ResetAfter: d}
		}
		key, account := rules[random.IntN(len(rules))], rules[random.IntN(len(rules))]
		var request limit.Request
		var refusals limit.Refusals
		request.UpdateAfter(quota(key), quota(account), askedAt, rtt)
		d, refused := request.CachedRefusal(key, account, now)
		refusals.Remember(&request, key, account)
		refusals.Keep(rendered(d), d, now)
		if !refused {
			if got := refusals.Kept(now); got != nil {
				t.Fatalf("a reply to a request that is not refused: %s", got)
			}
			continue
		}
		for range 50 {
			d, refused := request.CachedRefusal(key, account, now)
			switch got := refusals.Kept(now); {
			case got == nil && refused:
				refusals.Keep(rendered(d), d, now)
			case got == nil:
				ended++
			case !refused || got != rendered(d):
				t.Fatalf("kept: %v, new: %t %s", got, refused, rendered(d))
			default:
				kept++
			}
			now = now.Add(upTo([]time.Duration{50 * time.Microsecond, time.Millisecond, 100 * time.Millisecond}[random.IntN(3)]))
		}
	}
	if kept < 10_000 || ended < 1000 {
		t.Errorf("%d replies were kept, %d refusals ended", kept, ended)
	}
}

func TestRefusals_KeptUntilUpdate(t *testing.T) {
	t.Parallel()
	day := redis_rate.Limit{Rate: 50, Burst: 50, Period: 24 * time.Hour}
	full := limit.Quota{Rule: day, ResetAfter: 24 * time.Hour}
	now := time.Unix(1_800_000_000, 0)
	var request limit.Request
	var refusals limit.Refusals
	keep := func() {
		t.Helper()
		d, _ := request.CachedRefusal(day, another, now)
		refusals.Keep("reply", d, now)
		if got := refusals.Kept(now); got != "reply" {
			t.Fatalf("kept: %v", got)
		}
	}
	request.UpdateAfter(full, limit.Quota{Rule: another}, now, 0)
	refusals.Remember(&request, day, another)
	keep()
	if got := refusals.Kept(now.Add(-1)); got != nil {
		t.Errorf("an earlier request gets %v", got)
	}
	request.UpdateAfter(full, limit.Quota{Rule: another, ResetAfter: time.Second}, now, 0)
	if got := refusals.Kept(now); got != nil {
		t.Errorf("after an update: %v", got)
	}
	keep()
	request.UpdateAfter(limit.Quota{Rule: day}, limit.Quota{Rule: another}, now, 0)
	if got := refusals.Kept(now); got != nil {
		t.Errorf("after the refusal ended: %v", got)
	}
}
