package limit

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"intents.internal/pkg/tokenbucket"
)

// sortTakes groups the requests by rules and cost, then by account, then by key. The sort is stable.
func sortTakes(batch []*pending[tokenTake]) {
	slices.SortStableFunc(batch, func(a, b *pending[tokenTake]) int {
		x, y := &a.item, &b.item
		if x.rules != y.rules {
			return cmp.Or(compareRules(x.rules.key, y.rules.key), compareRules(x.rules.account, y.rules.account), cmp.Compare(x.rules.cost, y.rules.cost))
		}
		if x.account != y.account {
			if order := cmp.Compare(x.account.name, y.account.name); order != 0 {
				return order
			}
		}
		return cmp.Compare(x.key.name, y.key.name)
	})
}

func compareRules(a, b redis_rate.Limit) int {
	return cmp.Or(cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.Burst, b.Burst), cmp.Compare(a.Period, b.Period))
}

// addTakes starts a call and adds requests that have the same rules and cost.
func addTakes(call *tokenbucket.Call, batch []*pending[tokenTake]) {
	r := batch[0].item.rules
	call.Begin(tokenbucket.Rule(r.key), tokenbucket.Rule(r.account), r.cost)
	for _, p := range batch {
		call.Add(p.item.key.field, p.item.account.field)
	}
}

// setDecisions sets the decisions of the requests of a call, and updates their copies.
func setDecisions(batch []*pending[tokenTake], reply []int64, askedAt time.Time, rtt time.Duration) {
	for i, p := range batch {
		t := &p.item
		key, account := parseQuota(reply[2*i], t.rules.key, 1), parseQuota(reply[2*i+1], t.rules.account, t.rules.cost)
		t.key.update(key, askedAt, rtt)
		if i+1 == len(batch) || batch[i+1].item.account != t.account {
			t.account.update(account, askedAt, rtt)
		}
		t.decision, p.done = decide(key, account), true
	}
}

// parseQuota parses one number of a reply of tokenbucket.Call on a request of so many tokens. Its rounding to a microsecond must not
// reduce Remaining, nor report tokens that the bucket has refused.
func parseQuota(micros int64, rule redis_rate.Limit, tokens int) Quota {
	if rule.Rate == 0 {
		return Quota{}
	}
	refused := micros < 0
	if refused {
		micros = -1 - micros
	}
	q := Quota{Rule: rule, ResetAfter: time.Duration(micros) * time.Microsecond}
	left, wait := tokenbucket.Rule(rule).Left(q.ResetAfter-time.Microsecond, tokens)
	q.Remaining = left
	if refused {
		q.Remaining, q.RetryAfter = min(left, tokens-1), wait+time.Microsecond
	}
	return q
}
