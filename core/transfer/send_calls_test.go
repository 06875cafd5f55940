package transfer_test

import (
	"encoding/hex"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"intents.internal/core/transfer"
	"intents.internal/core/transfer/transfertest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// Whatever intents a batch has: each is in one request or excluded, in order, each request has at most so many calls, and before each call that
// needs an allowance the approvals of its request for that token and spender are one, of their sum.
func TestPlanCalls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		var items []transfer.Payable
		for _, intent := range rapid.SliceOfN(transfertest.Intent(), 1, 12).Draw(t, "intents") {
			intent.ID = uuid.New()
			tx, err := intent.Tx(transfer.Moment{Now: intent.Deadline.Add(-time.Hour), BlockTime: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "one sender") && len(items) > 0 {
				intent.Source.Account = items[0].Source.Account
			}
			items = append(items, transfer.Payable{Intent: intent, Tx: tx})
		}
		most := rapid.IntRange(2, 8).Draw(t, "most")
		requests, excluded, err := transfer.PlanCalls(items, now, most)
		if err != nil {
			t.Fatal(err)
		}
		byID := map[uuid.UUID]transfer.Payable{}
		for _, item := range items {
			byID[item.ID] = item
		}
		seen := map[uuid.UUID]int{}
		for _, e := range excluded {
			seen[e.ID]++
		}
		for _, request := range requests {
			for _, id := range request.Transfers {
				seen[id]++
			}
			standsAlone(t, request, byID, most)
		}
		for _, item := range items {
			if seen[item.ID] != 1 {
				t.Errorf("transfer %s is there %d times", item.ID, seen[item.ID])
			}
		}
	})
}

// standsAlone holds a request to its bound and to the approvals that its calls need.
func standsAlone(t *rapid.T, request transfer.SendCalls, byID map[uuid.UUID]transfer.Payable, most int) {
	if len(request.Calls) > most {
		t.Errorf("%d calls of at most %d", len(request.Calls), most)
	}
	needed := map[string]*big.Int{} // by token and spender
	var approvals int
	calls := slices.Clone(request.Calls)
	for _, id := range request.Transfers {
		item := byID[id]
		if item.Source.Account.Chain != request.Chain || item.Source.Account.Address != request.From {
			t.Errorf("an intent of %v in a request of %s on %s", item.Source.Account, request.From, request.Chain)
		}
		for _, a := range item.Tx.Allowances {
			key := a.Token.Address + a.Spender
			if needed[key] == nil {
				needed[key] = new(big.Int)
				approvals++
			}
			needed[key].Add(needed[key], a.Amount)
		}
	}
	if len(calls) != len(request.Transfers)+approvals {
		t.Errorf("%d calls for %d intents and %d approvals", len(calls), len(request.Transfers), approvals)
	}
	for _, id := range request.Transfers {
		item := byID[id]
		own := slices.IndexFunc(calls, func(c transfer.Call) bool { return cmp.Equal(c.Data, item.Tx.Data) && c.To == item.Tx.To })
		if own < 0 {
			t.Errorf("the call of %s is missing", id)
			continue
		}
		for _, a := range item.Tx.Allowances {
			sum := needed[a.Token.Address+a.Spender]
			word := hex.EncodeToString(sum.FillBytes(make([]byte, 32)))
			before := slices.IndexFunc(calls[:own], func(c transfer.Call) bool {
				return c.To == a.Approve.To && cmp.Equal(c.Data[:36], a.Approve.Data[:36]) && hex.EncodeToString(c.Data[36:]) == word
			})
			if before < 0 {
				t.Errorf("no approval of %s before the call of %s", sum, id)
			}
		}
	}
}

// Three openings of one token need one approval of their sum, unless no allowance can be it.
func TestPlanCalls_Approvals(t *testing.T) {
	t.Parallel()
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	for name, c := range map[string]struct {
		amounts []*big.Int
		want    []int
	}{
		"a sum":                {[]*big.Int{big.NewInt(5), big.NewInt(6), big.NewInt(7)}, []int{4}},
		"beyond every number":  {[]*big.Int{most, big.NewInt(1), big.NewInt(2)}, []int{2, 3}},
		"the largest number":   {[]*big.Int{new(big.Int).Sub(most, big.NewInt(3)), big.NewInt(1), big.NewInt(2)}, []int{4}},
		"one more than it can": {[]*big.Int{new(big.Int).Sub(most, big.NewInt(2)), big.NewInt(1), big.NewInt(2)}, []int{3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			var items []transfer.Payable
			for _, amount := range c.amounts {
				items = append(items, payable(t, amount, now))
			}
			requests, excluded, err := transfer.PlanCalls(items, now, 200)
			if err != nil || len(excluded) > 0 {
				t.Fatal(excluded, err)
			}
			var calls []int
			for _, request := range requests {
				calls = append(calls, len(request.Calls))
			}
			if diff := cmp.Diff(c.want, calls); diff != "" {
				t.Errorf("calls of each request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanCalls_ExpiresSoon(t *testing.T) {
	t.Parallel()
	now := time.Now()
	one := payable(t, big.NewInt(5), now)
	for left, want := range map[time.Duration][]transfer.Excluded{time.Minute: nil, time.Minute - 1: {{ID: one.ID, Reason: transfer.ExcludedExpiresSoon}}} {
		_, excluded, err := transfer.PlanCalls([]transfer.Payable{one}, one.Deadline.Add(-left), 10)
		if diff := cmp.Diff(want, excluded); diff != "" || err != nil {
			t.Errorf("%s before the deadline: %v (-want +got):\n%s", left, err, diff)
		}
	}
}

// An intent that is signed has no calls of its user's, whatever else excludes it.
func TestPlanCalls_Signing(t *testing.T) {
	t.Parallel()
	now := time.Now()
	sent, signed := payable(t, big.NewInt(5), now), payable(t, big.NewInt(6), now)
	signed.Signing.Scheme, signed.Tx = wire.Permit2, nil
	requests, excluded, err := transfer.PlanCalls([]transfer.Payable{sent, signed}, now, 10)
	if diff := cmp.Diff([]transfer.Excluded{{ID: signed.ID, Reason: transfer.ExcludedSigning}}, excluded); diff != "" || err != nil || len(requests) != 1 {
		t.Errorf("%d requests, %v (-want +got):\n%s", len(requests), err, diff)
	}
}

// payable is a bridge of this amount that is created now.
func payable(t *testing.T, amount *big.Int, now time.Time) transfer.Payable {
	t.Helper()
	request := wire.TransferRequest{Source: side(sepolia, alice, usdc, amount.String()), Destination: side(baseSepolia, bob, usdc, "1")}
	intent, err := transfer.New(transfer.NewID(now), transfer.Caller{Environment: network.Test}, request, fixture())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := intent.Tx(intent.MomentOf(transfer.History{}, fixture(), now))
	if err != nil || tx == nil {
		t.Fatal(tx, err)
	}
	return transfer.Payable{Intent: intent, Tx: tx}
}
