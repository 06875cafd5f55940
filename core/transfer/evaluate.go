package transfer

import "time"

// Evaluate returns the commands that bring the intent to the status that follows from its transactions, none if it has that
// status.
//
// The result depends only on the transactions, on a cancellation by the client and on the deadline. So it is independent of the
// order in which transactions became known, and Evaluate is idempotent. A simulated intent has no transactions to follow.
func (i *Intent) Evaluate(transactions []Transaction, now time.Time) ([]Command, error) {
	if i.Simulated {
		return nil, nil
	}
	g := i.goal(transactions, now)
	var commands []Command
	intent := *i
	for {
		command, more := intent.step(g)
		if !more {
			return commands, nil
		}
		if _, err := intent.Apply(command, now); err != nil {
			return nil, err
		}
		commands = append(commands, command)
	}
}

// goal is the status that follows from an intent's transactions, with the transactions that lead to it.
type goal struct {
	status Status
	// effect executed the intent, attempt may still execute it and failed did not; each is the newest of its kind, nil for none.
	effect, attempt, failed *Transaction
	// outcome is the settler's fill or refund, nil for none.
	outcome *Transaction
	// dropped means that an attempt was dropped: no provider knows it any more.
	dropped bool
}

// goal determines the status that follows from the intent's transactions.
func (i *Intent) goal(transactions []Transaction, now time.Time) goal {
	g := goal{effect: Effect(transactions), failed: failedAttempt(transactions, "")}
	for n := range transactions {
		t := &transactions[n]
		switch {
		case !t.isAttempt():
			g.outcome = preferredOutcome(g.outcome, t)
		case t.State == Dropped:
			g.dropped = true
		case t.State != Mined && (!t.Confirmed || failures[t.State] == ""):
			g.attempt = newer(g.attempt, t)
		}
	}
	switch {
	case g.effect != nil && g.effect.Confirmed && g.outcome != nil:
		g.status = outcomes[g.outcome.Role].status
	case g.effect != nil && g.effect.Confirmed:
		g.status = Confirmed
	case g.effect != nil || g.attempt != nil:
		g.status = Submitted
	case g.paysAnyway():
		g.status = Filled
	case g.failed != nil:
		g.status = Failed
	case g.dropped:
		g.status = Expired
	default:
		g.status = i.withoutTransactions(now)
	}
	return g
}

// paysAnyway reports whether a solver has filled an order that was opened without its deposit: the recipient has the money.
func (g goal) paysAnyway() bool {
	return g.failed != nil && g.failed.State == Mismatch && g.outcome != nil && g.outcome.Role == RoleFill
}

// outcomes map the roles of the settler's transactions to statuses and triggers.
var outcomes = map[Role]struct {
	status  Status
	trigger Trigger
}{
	RoleFill: {Filled, Fill}, RoleRefund: {Refunded, Refund},
}

// preferredOutcome prefers a fill to a refund: an order whose solver did not claim in time is both, and the recipient has the money.
func preferredOutcome(known, t *Transaction) *Transaction {
	_, decides := outcomes[t.Role]
	if !decides || !t.Confirmed || t.State != Mined || (known != nil && known.Role == RoleFill) {
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

// step returns the next command towards the goal; more is false once the intent has its status.
func (i *Intent) step(g goal) (c Command, more bool) {
	hash := g.hash()
	if i.Status == g.status {
		return i.changeTransaction(g, hash)
	}
	switch i.Status {
	case Filled, Refunded:
		if trigger, ended := g.ended(); ended && trigger == Fill { // the fill was seen after the refund
			return Command{Trigger: Fill, Observed: g.outcome}, true
		} else if ended {
			return Command{Trigger: Reorg, To: Confirmed, Hash: hash, Observed: g.outcome}, true
		}
		return g.reorg(hash), true
	case Confirmed:
		if trigger, ended := g.ended(); ended {
			return Command{Trigger: trigger, Observed: g.outcome}, true
		}
		return g.reorg(hash), true
	case Submitted:
		return g.fromSubmitted(hash), true
	case Failed:
		if g.status == Filled && g.effect == nil {
			return Command{Trigger: Fill, Observed: g.outcome}, true
		}
		fallthrough
	default:
		// The intent has no transaction yet, or one that failed. A dropped attempt changes nothing.
		if hash == "" {
			return c, false
		}
		return Command{Trigger: Submit, Hash: hash, Observed: g.effect}, true
	}
}

// changeTransaction handles an intent that has the right status with another transaction.
func (i *Intent) changeTransaction(g goal, hash string) (c Command, more bool) {
	if hash == i.Hash || g.effect == nil && g.attempt == nil {
		return c, false
	}
	if i.Status == Submitted {
		return Command{Trigger: Submit, Hash: hash, Observed: g.effect}, true
	}
	return Command{Trigger: Reorg, To: Submitted, Hash: hash, Observed: g.effect}, true
}

// fromSubmitted returns the command for a submitted intent.
func (g goal) fromSubmitted(hash string) Command {
	switch {
	case g.effect != nil: // confirmed; another command may follow
		return Command{Trigger: Confirm, Hash: hash, Observed: g.effect}
	case g.failed != nil:
		return Command{Trigger: Fail, Failure: failures[g.failed.State], Observed: g.failed}
	case g.dropped:
		return Command{Trigger: Drop}
	default:
		return g.reorg("")
	}
}

// reorg returns the command for an effect that a reorganization removed.
func (g goal) reorg(hash string) Command {
	to := g.status
	if to == Failed {
		to = Submitted
	}
	return Command{Trigger: Reorg, To: to, Hash: hash, Observed: g.effect}
}

// ended returns the trigger of the settler's fill or refund; ok is false while there is none.
func (g goal) ended() (trigger Trigger, ok bool) {
	if g.status != Filled && g.status != Refunded {
		return "", false
	}
	return outcomes[g.outcome.Role].trigger, true
}

// hash returns the hash of the transaction that executes the intent or may do so, empty for none.
func (g goal) hash() string {
	for _, t := range []*Transaction{g.effect, g.attempt, g.failed} {
		if t != nil {
			return t.Hash.Hex()
		}
	}
	return ""
}
