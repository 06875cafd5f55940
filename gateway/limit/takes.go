package limit

import (
	"cmp"
	"slices"
	"time"

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

func compareRules(a, b tokenbucket.Rule) int {
	return cmp.Or(cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.Burst, b.Burst), cmp.Compare(a.Period, b.Period))
}

// addTakes starts a call and adds requests that have the same rules and cost.
func addTakes(call *tokenbucket.Call, batch []*pending[tokenTake]) {
	r := batch[0].item.rules
	call.Begin(r.key, r.account, r.cost)
	for _, p := range batch {
		call.Add(p.item.key.field, p.item.account.field)
	}
}

// setDecisions sets the decisions of the requests of a call, and updates their copies.
func setDecisions(batch []*pending[tokenTake], reply []int64, askedAt time.Time, rtt time.Duration) {
	for i, p := range batch {
		t := &p.item
		key, account := t.rules.key.ParseQuota(reply[2*i], 1), t.rules.account.ParseQuota(reply[2*i+1], t.rules.cost)
		t.key.update(key, askedAt, rtt)
		if i+1 == len(batch) || batch[i+1].item.account != t.account {
			t.account.update(account, askedAt, rtt)
		}
		t.decision, p.done = decide(key, account), true
	}
}
