package transfer_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
)

func TestPreflight(t *testing.T) {
	t.Parallel()
	swap, payment, ether := newIntent(transfer.Swap), newIntent(transfer.Transfer), newIntent(transfer.Transfer)
	ether.Source.Token.Address = registry.NativeAddress
	for _, i := range []*transfer.Intent{swap, payment, ether} {
		i.Source.Amount = big.NewInt(5)
	}
	open, pay := &transfer.Tx{Allowances: []transfer.Allowance{{Amount: big.NewInt(5)}}}, &transfer.Tx{}
	status := func(status transfer.OrderStatus) *transfer.OrderStatus { return &status }
	good := func(change func(*transfer.Simulation)) transfer.Simulation {
		s := transfer.Simulation{Balance: big.NewInt(9), Allowance: big.NewInt(5), SettlerHasCode: true, OrderStatus: status(transfer.OrderNone)}
		if change != nil {
			change(&s)
		}
		return s
	}
	// stands is a simulation of the steps that a choice makes of a swap whose settler has an allowance.
	stands := func(allowance int64, stepsOf transfer.StepsOf, change func(*transfer.Simulation)) transfer.Simulation {
		s := good(change)
		s.Allowance = big.NewInt(allowance)
		s.Steps = stepsOf(open, s.Allowance)
		return s
	}
	refused := func(s *transfer.Simulation) { s.Failure, s.Failed = "The approval reverts.", transfer.StepApproval }
	const ok, needed, unknown, notOK = "ok", "needed", "unknown", "not ok"
	for name, c := range map[string]struct {
		intent     *transfer.Intent
		tx         *transfer.Tx
		simulation transfer.Simulation
		check      int
		result     string
		detail     string
	}{
		"balance":          {swap, open, good(nil), 0, ok, "The account has 9 units of the token, and the transaction needs 5."},
		"too little":       {swap, open, good(func(s *transfer.Simulation) { s.Balance = big.NewInt(4) }), 0, notOK, "The account has 4 units of the token, and the transaction needs 5."},
		"no balance":       {swap, open, good(func(s *transfer.Simulation) { s.Balance = nil }), 0, notOK, "The token's contract does not tell the account's balance."},
		"ether":            {ether, pay, good(nil), 0, ok, "The account has 9 wei, and the transaction needs 5 and its gas."},
		"too little ether": {ether, pay, good(func(s *transfer.Simulation) { s.Balance = big.NewInt(4) }), 0, notOK, "The account has 4 wei, and the transaction needs 5 and its gas."},
		"allowance":        {swap, open, good(nil), 1, ok, "The settler may draw 5 units of the token, and the transaction needs 5."},
		"no allowance":     {swap, open, stands(0, transfer.AllSteps, nil), 1, needed, "The settler may draw 0 units of the token, and the transaction needs 5; the approval that is sent first grants it."},
		"small allowance":  {swap, open, stands(4, transfer.AllSteps, nil), 1, needed, "The settler may draw 4 units of the token, and the transaction needs 5; the approval that is sent first grants it."},
		"least allowance, reset": {
			swap, open, stands(1, transfer.NeededSteps, nil), 1, needed,
			"The settler may draw 1 units of the token, and the transaction needs 5; the reset and the approval that are sent first grant it, since some tokens refuse to change an allowance that is not 0.",
		},
		"large allowance":    {swap, open, good(func(s *transfer.Simulation) { s.Allowance = big.NewInt(6) }), 1, ok, "The settler may draw 6 units of the token, and the transaction needs 5."},
		"unknown allowance":  {swap, open, good(func(s *transfer.Simulation) { s.Allowance = nil }), 1, notOK, "The token's contract does not tell the settler's allowance."},
		"unneeded allowance": {payment, pay, good(func(s *transfer.Simulation) { s.Allowance = nil }), 1, ok, "An allowance is not needed."},
		"deadline":           {swap, open, good(nil), 2, ok, "The deadline is 1m30s ahead."},
		"settler":            {swap, open, good(nil), 3, ok, "The input settler has not opened the order yet."},
		"no contract":        {swap, open, good(func(s *transfer.Simulation) { s.SettlerHasCode = false }), 3, notOK, "There is no contract at the input settler's address 0x00fC00edbe7C003b006f870068c548940000223e."},
		"no settler":         {swap, open, good(func(s *transfer.Simulation) { s.OrderStatus = nil }), 3, notOK, "The contract at 0x00fC00edbe7C003b006f870068c548940000223e does not tell the order's status, so it is no input settler."},
		"open already":       {swap, open, good(func(s *transfer.Simulation) { s.OrderStatus = status(transfer.OrderDeposited) }), 3, notOK, "The order is open already, which anybody can do for the sender; nothing needs to be sent."},
		"claimed":            {swap, open, good(func(s *transfer.Simulation) { s.OrderStatus = status(transfer.OrderClaimed) }), 3, notOK, "The order was opened and has ended; it cannot be opened again."},
		"refunded":           {swap, open, good(func(s *transfer.Simulation) { s.OrderStatus = status(transfer.OrderRefunded) }), 3, notOK, "The order was opened and has ended; it cannot be opened again."},
		"unneeded settler":   {payment, pay, transfer.Simulation{}, 3, ok, "A settler is not needed."},
		"simulation":         {swap, open, good(nil), 4, ok, "The transaction succeeds at the newest block."},
		"failure":            {swap, open, good(func(s *transfer.Simulation) { s.Failure = "It fails." }), 4, notOK, "It fails."},
		"approval refused":   {swap, open, stands(0, transfer.AllSteps, refused), 4, notOK, "The approval reverts."},
		"approval refused, small allowance": {
			swap, open, stands(4, transfer.AllSteps, refused), 4, notOK,
			"The approval reverts. Some tokens refuse to change an allowance that is not 0: send the reset in tx.allowances, then check again.",
		},
		"approval refused, allowance": {
			swap, open, stands(5, transfer.AllSteps, refused), 4, notOK, "The approval reverts. The allowance is in place: send the transaction without the approval.",
		},
		"all steps":               {swap, open, stands(9, transfer.AllSteps, nil), 4, ok, "The approval and then the transaction succeed at the newest block."},
		"the steps without reset": {swap, open, stands(0, transfer.NeededSteps, nil), 4, ok, "The approval and then the transaction succeed at the newest block."},
		"the steps with a reset":  {swap, open, stands(4, transfer.NeededSteps, nil), 4, ok, "The reset of the allowance, the approval and then the transaction succeed at the newest block."},
		"the step with allowance": {swap, open, stands(5, transfer.NeededSteps, nil), 4, ok, "The transaction succeeds at the newest block."},
		"nobody knows": {
			swap, open, stands(0, transfer.AllSteps, func(s *transfer.Simulation) { s.Unknown = true }), 4, unknown,
			"The node cannot simulate the transaction after its approval, so neither whether it succeeds nor its gas is known before the approval is in a block.",
		},
		"false":        {payment, pay, good(func(s *transfer.Simulation) { s.Returned = make([]byte, 32) }), 4, notOK, "The token refuses the transfer: it returns false."},
		"true":         {payment, pay, good(func(s *transfer.Simulation) { s.Returned = append(make([]byte, 31), 1) }), 4, ok, "The transaction succeeds at the newest block."},
		"no bool":      {payment, pay, good(nil), 4, ok, "The transaction succeeds at the newest block."},
		"a swap's own": {swap, open, good(func(s *transfer.Simulation) { s.Returned = make([]byte, 32) }), 4, ok, "The transaction succeeds at the newest block."},
	} {
		names := []transfer.CheckName{"balance", "allowance", "deadline", "settler", "simulation"}
		if c.simulation.Steps == nil {
			c.simulation.Steps = transfer.NeededSteps(c.tx, big.NewInt(5))
		}
		got := c.intent.Preflight(c.tx, c.simulation, c.intent.Deadline.Add(-90*time.Second))
		if diff := cmp.Diff(transfer.Check{Name: names[c.check], OK: c.result != notOK, Needed: c.result == needed, Unknown: c.result == unknown, Detail: c.detail}, got[c.check]); diff != "" || len(got) != len(names) {
			t.Errorf("%s, of %d checks (-want +got):\n%s", name, len(got), diff)
		}
	}
	if late := swap.Preflight(open, stands(0, transfer.AllSteps, nil), swap.Deadline)[2]; late.OK || late.Detail != "The deadline has passed." {
		t.Errorf("late: %+v", late)
	}
}
