package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/fair"
)

const (
	// maxWaiting is how many transactions of one owner wait for their turn.
	maxWaiting = 32
	// turnTimeout bounds the wait for a turn. It is below the deadline of a request, which can still be answered.
	turnTimeout = time.Second
)

// ErrTooManyWaiting is returned for work of an owner of whom too many wait for their turn, or whose turn does not come.
var ErrTooManyWaiting = fair.ErrTooManyWaiting

// turns let one transaction of an owner at a time take a connection. Transactions of one owner lock the same row, and one that waited for
// it in Postgres would keep a connection from everybody else. It is safe for concurrent use.
type turns struct{ owners *fair.Slots[uuid.UUID] }

func newTurns() turns { return turns{fair.New[uuid.UUID](0, fair.AtMost(1))} }

// Turn are the owners whose turn a transaction takes: the accounts whose rows it locks, and any other row that it locks and that somebody
// can lock again and again.
type Turn struct{ owners []uuid.UUID }

// NoTurn is of transactions that no client can multiply: those of background workers, of operators and of gateways.
var NoTurn Turn

// TurnOf is the turn of some owners.
func TurnOf(owners ...uuid.UUID) Turn { return NoTurn.And(owners...) }

// And returns the turn with further owners.
func (t Turn) And(owners ...uuid.UUID) Turn {
	all := slices.Concat(t.owners, owners)
	slices.SortFunc(all, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) // one order prevents deadlocks
	return Turn{owners: slices.Compact(all)}
}

// acquire waits for a turn. The caller must call release. It returns ErrTooManyWaiting or the error of ctx.
func (t *turns) acquire(ctx context.Context, turn Turn) (release func(), err error) {
	if len(turn.owners) == 0 {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, turnTimeout, ErrTooManyWaiting)
	defer cancel()
	var releases []func()
	release = func() {
		for _, one := range releases {
			one()
		}
	}
	for _, owner := range turn.owners {
		one, err := t.owners.Acquire(ctx, owner, maxWaiting)
		if err != nil {
			release()
			return nil, err
		}
		releases = append(releases, one)
	}
	return release, nil
}
