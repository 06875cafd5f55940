package transfer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// last is the intent's last status by what the contracts say of the order after each step.
func (c recordedCase) last() transfer.Status {
	status, opened := transfer.Created, false
	for _, step := range c.Steps {
		if step.Status == 0 && step.opens(c) && !opened {
			status = transfer.Failed
		}
		opened = opened || step.Status == 1 && (step.opens(c) || strings.HasPrefix(step.Step, "openFor"))
		switch {
		case !opened || step.After == nil:
		case step.After.FillRecord[0] != "0" && c.Order.ours():
			status = transfer.Filled
		case step.After.OrderStatus == transfer.OrderRefunded:
			status = transfer.Refunded
		default:
			status = transfer.Confirmed
		}
	}
	return status
}

// The logs of every recorded case lead to the status that the contracts tell, in whatever order they become known.
func TestIntent_Recorded(t *testing.T) {
	t.Parallel()
	r := recorded(t)
	met := map[transfer.Status]int{}
	for _, c := range r.Cases {
		intent := c.Order.intent(r.settler(c))
		intent.OrderID = c.OrderID
		var transactions []transfer.Transaction
		for n, step := range c.Steps {
			transactions = append(transactions, c.transactions(t, intent, n, step)...)
		}
		want := c.last()
		met[want]++
		for seed := range uint64(20) {
			rand.New(rand.NewPCG(seed, seed)).Shuffle(len(transactions), func(a, b int) {
				transactions[a], transactions[b] = transactions[b], transactions[a]
			})
			follower := *intent
			for n := range transactions {
				evaluate(t, &follower, transactions[:n+1], intent.Deadline.Add(-1))
			}
			if follower.Status != want {
				t.Fatalf("%s: %s, want %s, after %s", c.Name, follower.Status, want, roles(transactions))
			}
			if again := evaluate(t, &follower, transactions, intent.Deadline); again != "" {
				t.Fatalf("%s: evaluated again: %s", c.Name, again)
			}
		}
	}
	for _, status := range []transfer.Status{transfer.Created, transfer.Failed, transfer.Confirmed, transfer.Filled, transfer.Refunded} {
		if met[status] == 0 {
			t.Errorf("no case is %s", status)
		}
	}
}

func roles(transactions []transfer.Transaction) string {
	var out []string
	for _, t := range transactions {
		out = append(out, fmt.Sprintf("%s %s", t.Role, t.State))
	}
	return strings.Join(out, ", ")
}

// transactions are what a step shows of the intent: the settlers' events, and the sender's attempt that reverted.
func (c recordedCase) transactions(t *testing.T, intent *transfer.Intent, n int, step recordedStep) (found []transfer.Transaction) {
	t.Helper()
	receipt := c.receipt(n)
	for _, log := range receipt.Logs {
		seen, ok := intent.MatchLog(caip.EIP155Chain(step.Chain), log)
		if !ok {
			continue
		}
		if !intent.MatchesReceipt(seen, receipt) {
			t.Errorf("%s: %s is not in its own receipt", c.Name, step.Step)
		}
		seen.Confirmed = true
		found = append(found, seen)
	}
	if !step.opens(c) {
		return found
	}
	state, index := intent.Classify(transfer.Inclusion{Receipt: receipt})
	switch {
	case state == transfer.Mined && len(found) == 1 && found[0].Role == transfer.RoleOpen && found[0].LogIndex == index:
		return found
	case state == transfer.Reverted && step.Status == 0:
		block := &transfer.Block{Number: receipt.BlockNumber, Hash: receipt.BlockHash}
		return []transfer.Transaction{{Role: transfer.RoleOpen, State: state, Confirmed: true, Hash: receipt.TxHash, Block: block}}
	default:
		t.Errorf("%s: the attempt %s is %s at log %d", c.Name, step.Step, state, index)
		return found
	}
}
