package postgres

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// InTx runs work in a transaction, which commits if work returns nil and is rolled back otherwise. It returns work's error
// unchanged, and an OutcomeUnknownError if the result of the commit did not arrive. It waits for the turn before it takes a
// connection, and returns ErrTooManyWaiting.
func (d *DB) InTx(ctx context.Context, turn Turn, work func(context.Context, bun.Tx) error) error {
	release, err := d.turns.acquire(ctx, turn)
	if err != nil {
		return err
	}
	defer release()
	commits := false
	err = d.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		err := work(ctx, tx)
		if err == nil {
			err = ctx.Err() // so that an end of ctx from here on may be of a COMMIT that was sent
		}
		commits = err == nil
		return err
	})
	if commits {
		return OutcomeOf(err)
	}
	return err
}

// WriteTimeout bounds every transaction that writes intents or positions of their events. It is above the statement timeout, so that
// the error of the database comes first. It also bounds how much later than its updated_at an intent becomes visible.
const WriteTimeout = 10 * time.Second
