package transfer_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/intent/token"
	"intents.internal/core/intent/transfer"
)

func TestPreflight(t *testing.T) {
	t.Parallel()
	swap, payment, ether := newIntent(transfer.Swap), newIntent(transfer.Transfer), newIntent(transfer.Transfer)
	ether.Source.Token.Address = token.NativeAddress
	for _, i := range []*transfer.Intent{swap, payment, ether} {
		i.Source.Amount = big.NewInt(5)
	}
	open := &transfer.Tx{Allowances: []transfer.Allowance{{}}}
	status := func(status transfer.OrderStatus) *transfer.OrderStatus { return &status }
	good := func(change func(*transfer.Simulation)) transfer.Simulation {
		s := transfer.Simulation{Balance: big.NewInt(9), Allowance: big.NewInt(5), SettlerHasCode: true, OrderStatus: status(transfer.OrderNone)}
		if change != nil {
			change(&s)
		}
		return s
	}
	for name, c := range map[string]struct {
		intent     *transfer.Intent
		tx         *transfer.Tx
		simulation transfer.Simulation
		check      int
		ok         bool
		detail     string
	}{
		"balance":            {swap, open, good(nil), 0, true, "The account has 9 units of the token, and the transaction needs 5."},
		"too little":         {swap, open, good(func(s *transfer.Simulation) { s.Balance = big.NewInt(4) }), 0, false, "The account has 4 units of the token, and the transaction needs 5."},
		"no balance":         {swap, open, good(func(s *transfer.Simulation) { s.Balance = nil }), 0, false, "The token's contract does not tell the account's balance."},
		"ether":              {ether, &transfer.Tx{}, good(nil), 0, true, "The account has 9 wei, and the transaction needs 5 and its gas."},
		"too little ether":   {ether, &transfer.Tx{}, good(func(s *transfer.Simulation) { s.Balance = big.NewInt(4) }), 0, false, "The account has 4 wei, and the transaction needs 5 and its gas."},
		"allowance":          {swap, open, good(nil), 1, true, "The settler may draw 5 units of the token, and the transaction needs 5."},
		"no allowance":       {swap, open, good(func(s *transfer.Simulation) { s.Allowance = new(big.Int) }), 1, false, "The settler may draw 0 units of the token, and the transaction needs 5; send the approval in tx.allowances first."},
		"small allowance":    {swap, open, good(func(s *transfer.Simulation) { s.Allowance = big.NewInt(4) }), 1, false, "The settler may draw 4 units of the token, and the transaction needs 5; send the approval in tx.allowances first, and its reset before that, since some tokens refuse to change an allowance that is not 0."},
		"least allowance":    {swap, open, good(func(s *transfer.Simulation) { s.Allowance = big.NewInt(1) }), 1, false, "The settler may draw 1 units of the token, and the transaction needs 5; send the approval in tx.allowances first, and its reset before that, since some tokens refuse to change an allowance that is not 0."},
		"large allowance":    {swap, open, good(func(s *transfer.Simulation) { s.Allowance = big.NewInt(6) }), 1, true, "The settler may draw 6 units of the token, and the transaction needs 5."},
		"unknown allowance":  {swap, open, good(func(s *transfer.Simulation) { s.Allowance = nil }), 1, false, "The token's contract does not tell the settler's allowance."},
		"unneeded allowance": {payment, &transfer.Tx{}, good(func(s *transfer.Simulation) { s.Allowance = nil }), 1, true, "An allowance is not needed."},
		"deadline":           {swap, open, good(nil), 2, true, "The deadline is 1m30s ahead."},
		"settler":            {swap, open, good(nil), 3, true, "The input settler has not opened the order yet."},
		"no contract":        {swap, open, good(func(s *transfer.Simulation) { s.SettlerHasCode = false }), 3, false, "There is no contract at the input settler's address 0x00fC00edbe7C003b006f870068c548940000223e."},
		"no settler":         {swap, open, good(func(s *transfer.Simulation) { s.OrderStatus = nil }), 3, false, "The contract at 0x00fC00edbe7C003b006f870068c548940000223e does not tell the order's status, so it is no input settler."},
		"open already":       {swap, open, good(func(s *transfer.Simulation) { s.OrderStatus = status(transfer.OrderDeposited) }), 3, false, "The order is open already, which anybody can do for the sender; nothing needs to be sent."},
		"claimed":            {swap, open, good(func(s *transfer.Simulation) { s.OrderStatus = status(transfer.OrderClaimed) }), 3, false, "The order was opened and has ended; it cannot be opened again."},
		"refunded":           {swap, open, good(func(s *transfer.Simulation) { s.OrderStatus = status(transfer.OrderRefunded) }), 3, false, "The order was opened and has ended; it cannot be opened again."},
		"unneeded settler":   {payment, &transfer.Tx{}, transfer.Simulation{}, 3, true, "A settler is not needed."},
		"simulation":         {swap, open, good(nil), 4, true, "The transaction succeeds at the newest block."},
		"failure":            {swap, open, good(func(s *transfer.Simulation) { s.Failure = "It fails." }), 4, false, "It fails."},
		"failure without allowance": {
			swap, open, good(func(s *transfer.Simulation) { s.Failure, s.Allowance = "It fails.", big.NewInt(4) }), 4, false,
			"The order cannot be opened before the allowance is in place; grant it, then check again.",
		},
		"failure after the approval": {
			swap, open, good(func(s *transfer.Simulation) { s.Failure, s.Allowance, s.Approved = "It fails.", big.NewInt(4), true }), 4, false, "It fails.",
		},
		"after the approval": {
			swap, open, good(func(s *transfer.Simulation) { s.Allowance, s.Approved = new(big.Int), true }), 4, true,
			"The approval and then the transaction succeed at the newest block.",
		},
		"false":        {payment, &transfer.Tx{}, good(func(s *transfer.Simulation) { s.Returned = make([]byte, 32) }), 4, false, "The token refuses the transfer: it returns false."},
		"true":         {payment, &transfer.Tx{}, good(func(s *transfer.Simulation) { s.Returned = append(make([]byte, 31), 1) }), 4, true, "The transaction succeeds at the newest block."},
		"no bool":      {payment, &transfer.Tx{}, good(nil), 4, true, "The transaction succeeds at the newest block."},
		"a swap's own": {swap, open, good(func(s *transfer.Simulation) { s.Returned = make([]byte, 32) }), 4, true, "The transaction succeeds at the newest block."},
	} {
		names := []transfer.CheckName{"balance", "allowance", "deadline", "settler", "simulation"}
		got := c.intent.Preflight(c.tx, c.simulation, c.intent.Deadline.Add(-90*time.Second))
		if diff := cmp.Diff(transfer.Check{Name: names[c.check], OK: c.ok, Detail: c.detail}, got[c.check]); diff != "" || len(got) != len(names) {
			t.Errorf("%s, of %d checks (-want +got):\n%s", name, len(got), diff)
		}
	}
	if late := swap.Preflight(open, good(nil), swap.Deadline)[2]; late.OK || late.Detail != "The deadline has passed." {
		t.Errorf("late: %+v", late)
	}
}
