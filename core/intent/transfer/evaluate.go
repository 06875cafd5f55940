package transfer

import "time"

// Evaluate returns the commands that bring the intent to the status that follows from its transactions, none if it has that
// status.
//
// The result depends only on the transactions, on a cancellation by the client and on the deadline. So it is independent of the
// order in which transactions became known, and Evaluate is idempotent.
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

// verdict is the result of judging an intent's transactions.
type verdict struct {
	status Status
	// effect executed the intent, attempt may still execute it and failed did not; each is the newest of its kind, nil for none.
	effect, attempt, failed *Transaction
	// outcome is the settler's fill or refund, nil for none.
	outcome *Transaction
	// dropped means that an attempt was dropped: no provider knows it any more.
	dropped bool
}

// judge determines the status that follows from the intent's transactions.
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

// outcomes map the roles of the settler's transactions to statuses and triggers.
var outcomes = map[Role]struct {
	status  Status
	trigger Trigger
}{
	RoleFill: {Filled, Fill}, RoleSettle: {Filled, Fill}, RoleRefund: {Refunded, Refund},
}

// preferredOutcome prefers the fill on the destination chain to the settlement on the source chain.
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

// withoutTransactions returns the status of an intent without transactions.
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

// step returns the next command towards the verdict; more is false once the intent has its status.
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
		// The intent has no transaction yet, or one that failed. A dropped attempt changes nothing.
		if carrier == "" {
			return c, false
		}
		return Command{Trigger: Submit, Hash: carrier, Observed: v.effect}, true
	}
}

// changeCarrier handles an intent that has the right status with another transaction.
func (i *Intent) changeCarrier(v verdict, carrier string) (c Command, more bool) {
	if carrier == i.Hash || v.effect == nil && v.attempt == nil {
		return c, false
	}
	if i.Status == Submitted {
		return Command{Trigger: Submit, Hash: carrier, Observed: v.effect}, true
	}
	return Command{Trigger: Reorg, To: Submitted, Hash: carrier, Observed: v.effect}, true
}

// conclude returns the command for a submitted intent.
func (v verdict) conclude(carrier string) Command {
	switch {
	case v.effect != nil: // confirmed; another command may follow
		return Command{Trigger: Confirm, Hash: carrier, Observed: v.effect}
	case v.failed != nil:
		return Command{Trigger: Fail, Failure: failures[v.failed.State], Observed: v.failed}
	case v.dropped:
		return Command{Trigger: Drop}
	default:
		return v.reorg("")
	}
}

// reorg returns the command for an effect that a reorganization removed.
func (v verdict) reorg(carrier string) Command {
	to := v.status
	if to == Failed {
		to = Submitted
	}
	return Command{Trigger: Reorg, To: to, Hash: carrier, Observed: v.effect}
}

// ended returns the trigger of the settler's fill or refund; ok is false while there is none.
func (v verdict) ended() (trigger Trigger, ok bool) {
	if v.status != Filled && v.status != Refunded {
		return "", false
	}
	return outcomes[v.outcome.Role].trigger, true
}

// carrier returns the hash of the transaction that executes the intent or may do so, empty for none.
func (v verdict) carrier() string {
	for _, t := range []*Transaction{v.effect, v.attempt, v.failed} {
		if t != nil {
			return t.Hash.Hex()
		}
	}
	return ""
}
