package transfer

import "time"

// Evaluate returns the commands that bring the intent to the status that follows from its transactions, none if it has that
// status.
//
// It depends only on the transactions, and on whether the client cancelled the intent or the deadline has passed. So the order in
// which transactions became known makes no difference, and neither does evaluating them again.
func (i *Intent) Evaluate(transactions []Transaction, now time.Time) ([]Command, error) {
	v := i.judge(transactions, now)
	var commands []Command
	intent := *i
	for {
		command, more := intent.step(v)
		if !more {
			return commands, nil
		}
		if _, err := intent.Apply(command, now); err != nil {
			return nil, err
		}
		commands = append(commands, command)
	}
}

// verdict summarizes the transactions of an intent.
type verdict struct {
	status Status
	// effect carries the intent out, attempt may still do so and failed has no effect; each is the newest of its kind, nil for
	// none.
	effect, attempt, failed *Transaction
	// outcome is the settler's result: the fill or the refund.
	outcome *Transaction
	// dropped means that there were attempts which no provider knows any more.
	dropped bool
}

// judge finds the status that follows from the transactions.
func (i *Intent) judge(transactions []Transaction, now time.Time) verdict {
	v := verdict{effect: Effect(transactions)}
	for n := range transactions {
		t := &transactions[n]
		_, useless := failures[t.State]
		switch {
		case !t.isAttempt():
			v.outcome = preferredOutcome(v.outcome, t)
		case useless && t.Confirmed:
			v.failed = newer(v.failed, t)
		case t.State == Dropped:
			v.dropped = true
		case t.State != Mined:
			v.attempt = newer(v.attempt, t)
		}
	}
	switch {
	case v.effect != nil && v.effect.Confirmed && v.outcome != nil:
		v.status = outcomes[v.outcome.Role].status
	case v.effect != nil && v.effect.Confirmed:
		v.status = Confirmed
	case v.effect != nil || v.attempt != nil:
		v.status = Submitted
	case v.failed != nil:
		v.status = Failed
	case v.dropped:
		v.status = Expired
	default:
		v.status = i.withoutTransactions(now)
	}
	return v
}

// outcomes applies the settler's results to an intent.
var outcomes = map[Role]struct {
	status  Status
	trigger Trigger
}{
	RoleFill: {Filled, Fill}, RoleSettle: {Filled, Fill}, RoleRefund: {Refunded, Refund},
}

// preferredOutcome prefers the fill itself to the source chain's report of it.
func preferredOutcome(known, t *Transaction) *Transaction {
	if !t.Confirmed || t.State != Mined || (known != nil && known.Role == RoleFill) {
		return known
	}
	return t
}

func newer(known, t *Transaction) *Transaction {
	if known == nil || t.SeenAt.After(known.SeenAt) {
		return t
	}
	return known
}

// withoutTransactions is the status if there are no transactions: created, cancelled or expired.
func (i *Intent) withoutTransactions(now time.Time) Status {
	switch {
	case i.Status == Created, i.Status == Cancelled, i.Status == Expired:
		return i.Status
	case !i.CancelledAt.IsZero():
		return Cancelled
	case !now.Before(i.Deadline):
		return Expired
	default:
		return Created
	}
}

// step is the next command on the way to a verdict; more is false once the intent is there.
func (i *Intent) step(v verdict) (c Command, more bool) {
	carrier := v.carrier()
	if i.Status == v.status {
		return i.changeCarrier(v, carrier)
	}
	switch i.Status {
	case Filled, Refunded:
		if _, ended := v.ended(); ended {
			return Command{Trigger: Reorg, To: Confirmed, Hash: carrier, Observed: v.outcome}, true
		}
		return v.reorg(carrier), true
	case Confirmed:
		if trigger, ended := v.ended(); ended {
			return Command{Trigger: trigger, Observed: v.outcome}, true
		}
		return v.reorg(carrier), true
	case Submitted:
		return v.conclude(carrier), true
	default:
		// Before its transaction or after one that came to nothing. An attempt that nobody knows any more changes nothing.
		if carrier == "" {
			return c, false
		}
		return Command{Trigger: Submit, Hash: carrier, Observed: v.effect}, true
	}
}

// changeCarrier handles an intent that has its status, but by another transaction.
func (i *Intent) changeCarrier(v verdict, carrier string) (c Command, more bool) {
	if carrier == i.Hash || v.effect == nil && v.attempt == nil {
		return c, false
	}
	if i.Status == Submitted {
		return Command{Trigger: Submit, Hash: carrier, Observed: v.effect}, true
	}
	return Command{Trigger: Reorg, To: Submitted, Hash: carrier, Observed: v.effect}, true
}

// conclude returns the step from submitted.
func (v verdict) conclude(carrier string) Command {
	switch {
	case v.effect != nil: // confirmed, and perhaps more after that
		return Command{Trigger: Confirm, Hash: carrier, Observed: v.effect}
	case v.failed != nil:
		return Command{Trigger: Fail, Failure: failures[v.failed.State], Observed: v.failed}
	case v.dropped:
		return Command{Trigger: Drop}
	default:
		return v.reorg("")
	}
}

// reorg returns the step back from an effect that is gone.
func (v verdict) reorg(carrier string) Command {
	to := v.status
	if to == Failed {
		to = Submitted
	}
	return Command{Trigger: Reorg, To: to, Hash: carrier, Observed: v.effect}
}

// ended returns the trigger of the settler's result; ok is false while the intent has none.
func (v verdict) ended() (trigger Trigger, ok bool) {
	if v.status != Filled && v.status != Refunded {
		return "", false
	}
	return outcomes[v.outcome.Role].trigger, true
}

// carrier returns the hash of the transaction that carries the intent out, or may do so, empty for none.
func (v verdict) carrier() string {
	for _, t := range []*Transaction{v.effect, v.attempt, v.failed} {
		if t != nil {
			return t.Hash.Hex()
		}
	}
	return ""
}
