package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

const (
	// maxWaiting is how many transactions of one owner wait for their turn.
	maxWaiting = 32
	// turnTimeout bounds the wait for a turn. It is below the deadline of a request, which can still be answered.
	turnTimeout = time.Second
)

// ErrTooManyWaiting is returned for a transaction of an owner of whom too many wait for their turn, or whose turn does not come.
var ErrTooManyWaiting = errors.New("too many transactions of one owner wait for each other")

// turns let one transaction of an owner at a time take a connection. Transactions of one owner lock the same row, and one that waited for
// it in Postgres would keep a connection from everybody else. It is safe for concurrent use.
type turns struct{ owners ownerSlots }

type (
	// ownerKey is the key of an owner in the context of a transaction that is to take the owner's turn.
	ownerKey struct{}
	// turnKey is the key of the owner in the context of a transaction that has the turn.
	turnKey struct{}
)

// InTurn returns a context whose transactions take the turn of an owner: an account whose row they lock, or the one row that they lock. It
// replaces the owner of ctx.
func InTurn(ctx context.Context, owner uuid.UUID) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// acquire waits for the turn of the owner of ctx, if it has one. The caller must call release, and use the returned context for the
// transaction. It returns ErrTooManyWaiting or the error of ctx.
func (t *turns) acquire(ctx context.Context) (_ context.Context, release func(), err error) {
	owner, ok := ctx.Value(ownerKey{}).(uuid.UUID)
	if !ok || ctx.Value(turnKey{}) == owner {
		return ctx, func() {}, nil
	}
	turn := t.owners.ref(owner, maxWaiting)
	if turn == nil {
		return nil, nil, ErrTooManyWaiting
	}
	timer := time.NewTimer(turnTimeout)
	defer timer.Stop()
	select {
	case turn.place <- struct{}{}:
		return context.WithValue(ctx, turnKey{}, owner), func() { <-turn.place; t.owners.unref(owner, turn) }, nil
	case <-timer.C:
		err = ErrTooManyWaiting
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.owners.unref(owner, turn)
	return nil, nil, err
}
