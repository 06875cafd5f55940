package transfer

import (
	"errors"
	"fmt"
	"slices"

	"intents.internal/pkg/network"
)

var (
	// ErrNotTest is returned for the simulation of an intent whose chains are not of the test environment.
	ErrNotTest = errors.New("only an intent of the test environment is simulated")
	// ErrSent is returned for the simulation of an intent that was sent: its chain decides its status.
	ErrSent = errors.New("a transaction or a signature of the intent is known")
	// ErrSimulated is returned where an intent that was simulated is to be sent. It wraps ErrNotSendable.
	ErrSimulated = fmt.Errorf("%w: it was simulated", ErrNotSendable)
)

// simulatedTriggers are those that a client simulates, in the order in which they are preferred.
var simulatedTriggers = []Trigger{Submit, Confirm, Fill, Refund, Fail, Drop, Expire}

// SimulatedStatuses are the statuses that can be simulated, in the usual order of a life.
var SimulatedStatuses = slices.DeleteFunc(slices.Clone(Statuses), func(s Status) bool {
	return !slices.ContainsFunc(simulatedTriggers, func(t Trigger) bool { return transitions[t].to[0] == s })
})

// simulatedFailure is why a simulated attempt fails.
const simulatedFailure = TxReverted

// Simulate returns the commands that take the intent to a status without any transaction, the fewest that the state machine has, none if it has
// that status. It returns ErrNotTest, ErrSent or an error that wraps ErrTransition. transactions is how many of the intent are known.
func (i *Intent) Simulate(to Status, transactions int) ([]Command, error) {
	switch {
	case i.Environment != network.Test:
		return nil, ErrNotTest
	case transactions > 0 || i.Hash != "" || !i.Signing.SignedAt.IsZero():
		return nil, ErrSent
	}
	ways := []way{{status: i.Status}}
	for n := 0; n < len(ways); n++ {
		if ways[n].status == to {
			return ways[n].commands, nil
		}
		for _, next := range i.simulatedSteps(ways[n]) {
			if !slices.ContainsFunc(ways, func(w way) bool { return w.status == next.status }) {
				ways = append(ways, next)
			}
		}
	}
	return nil, fmt.Errorf("simulate a %s that is %s as %s: %w", i.Type, i.Status, to, ErrTransition)
}

// Simulatable returns the statuses that the intent can be taken to, in the usual order of a life; none for one that cannot be simulated.
func (i *Intent) Simulatable(transactions int) (statuses []Status) {
	for _, s := range SimulatedStatuses {
		if commands, err := i.Simulate(s, transactions); err == nil && len(commands) > 0 {
			statuses = append(statuses, s)
		}
	}
	return statuses
}

// way is a status that can be simulated, with the commands that lead to it.
type way struct {
	status   Status
	commands []Command
}

// simulatedSteps are the ways that continue a way by one command.
func (i *Intent) simulatedSteps(from way) (next []way) {
	for _, trigger := range simulatedTriggers {
		t := transitions[trigger]
		if !slices.Contains(t.from, from.status) || t.settlerOnly && i.Type == Transfer {
			continue
		}
		c := Command{Trigger: trigger, Simulated: true}
		if trigger == Fail {
			c.Failure = simulatedFailure
		}
		next = append(next, way{t.to[0], append(slices.Clone(from.commands), c)})
	}
	return next
}
