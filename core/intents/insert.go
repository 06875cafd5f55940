package intents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"intents.internal/core/identity/access"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

var (
	// errNotWritten is returned for an insert whose caller left before the row was sent to the database.
	errNotWritten = errors.New("the request ended before its row was sent to the database")
	// errDuplicateKey is the result of an insert whose idempotency key the account has already stored.
	errDuplicateKey = errors.New("the idempotency key is stored already")
)

// Idempotency is the idempotency key of a request. The zero value is none.
type Idempotency struct {
	Key string
	// Environment is the environment of the API key. Each environment of an account has idempotency keys of its own.
	Environment network.Environment
	// Request must be equal in a repeated request.
	Request wire.TransferRequest
	// Source is the source chain of the request, for the default deadline; zero for a request of a quote, which has its own.
	Source registry.Chain
}

// Insert is an intent that waits to be stored with others in one commit.
type Insert struct {
	intent      *transfer.Intent
	idempotency Idempotency
	row         TransferRow
	span        trace.Span
	// results has room for the result.
	results chan<- Result
	// number counts the inserts of the writer's queue.
	number uint64
	// abandoned is set once the caller has left: the row is not sent to the database any more. The writer's mutex guards both.
	abandoned bool
	// sent is set once the row was sent to the database, until that is known to have failed.
	sent bool
}

// Result is what became of an insert, for Store.Inserted.
type Result struct {
	Insert *Insert
	// createdAt is when the row was created by the database's clock.
	createdAt time.Time
	err       error
}

// IsDuplicate reports whether nothing was stored because the account has used the idempotency key before.
func (r Result) IsDuplicate() bool { return errors.Is(r.err, errDuplicateKey) }

// NewInsert returns an insert for Enqueue, whose result is sent to results once, which must have room for it.
func (s *Store) NewInsert(ctx context.Context, intent *transfer.Intent, idempotency Idempotency, results chan<- Result) *Insert {
	i := &Insert{
		intent: intent, idempotency: idempotency, row: newTransferRow(intent), results: results,
		span: s.db.StartQuery(ctx, "INSERT", "transfers"),
	}
	i.row.IdempotencyKey = idempotency.Key
	return i
}

// Enqueue starts inserts, which share a commit if there is room for them.
func (s *Store) Enqueue(inserts ...*Insert) { s.writer.enqueue(inserts...) }

// Abandon gives up an insert whose result has not arrived, and returns one instead: the outcome is unknown if the row was sent to the
// database, otherwise it never will be. A result that arrives later means nothing.
func (s *Store) Abandon(i *Insert, cause error) Result {
	if s.writer.abandon(i) {
		return Result{Insert: i, err: &postgres.OutcomeUnknownError{Err: cause}}
	}
	return Result{Insert: i, err: fmt.Errorf("%w: %w", errNotWritten, cause)}
}

// Inserted returns the intent of an insert with its result, see InsertTransfer. It is called once for each insert. Only that of a duplicate
// reads the database.
func (s *Store) Inserted(ctx context.Context, r Result) (*transfer.Intent, error) {
	i, err := r.Insert, r.err
	if r.IsDuplicate() {
		err = nil
	}
	postgres.EndQuery(i.span, err)
	switch {
	case r.IsDuplicate():
		return s.TransferByIdempotencyKey(ctx, i.intent.AccountID, i.idempotency)
	case err != nil:
		err = fmt.Errorf("insert transfer %s: %w", i.intent.ID, err)
		if postgres.IsOutcomeUnknown(err) {
			err = &postgres.OutcomeUnknownError{Err: err, Repeatable: i.idempotency.Key != ""}
		}
		return nil, err
	}
	i.intent.CreatedAt, i.intent.UpdatedAt = r.createdAt, r.createdAt
	return i.intent, nil
}

// InsertTransfer stores an intent and its first event, both durable when it returns, and sets the intent's times. If the account
// has used the idempotency key before in this environment, it writes nothing and returns the current intent of that key, or
// ErrKeyReused if another request created it. After an OutcomeUnknownError the intent may be stored, and another attempt is safe
// only with an idempotency key; after any other error it is not stored.
func (s *Store) InsertTransfer(ctx context.Context, intent *transfer.Intent, idempotency Idempotency) (*transfer.Intent, error) {
	results := make(chan Result, 1)
	i := s.NewInsert(ctx, intent, idempotency, results)
	s.Enqueue(i)
	select {
	case r := <-results:
		return s.Inserted(ctx, r)
	case <-ctx.Done():
		r := s.Abandon(i, ctx.Err())
		select {
		case r = <-results: // it arrived together with the end of ctx
		default:
		}
		return s.Inserted(ctx, r)
	}
}

// InsertTransferGranted is InsertTransfer in a transaction of its own that first asks for the grant. It also returns the grant's error.
func (s *Store) InsertTransferGranted(
	ctx context.Context, grant access.Grant, intent *transfer.Intent, idempotency Idempotency,
) (*transfer.Intent, error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	inserted := false
	err := s.InTx(ctx, grant.Turn(), func(ctx context.Context, tx Tx) (err error) {
		if err := grant.Check(ctx, access.Within(tx.db), intent.AccountID); err != nil {
			return err
		}
		inserted, err = tx.InsertTransfer(ctx, intent, idempotency.Key)
		return err
	})
	switch {
	case postgres.IsOutcomeUnknown(err):
		return nil, &postgres.OutcomeUnknownError{Err: err, Repeatable: idempotency.Key != ""}
	case err != nil:
		return nil, err
	case !inserted:
		return s.TransferByIdempotencyKey(ctx, intent.AccountID, idempotency)
	}
	s.CountTransitions([]transfer.Event{{To: transfer.Created}})
	return intent, nil
}
