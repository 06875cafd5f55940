package postgres

import (
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// OutcomeUnknownError is the error of a write that was sent to the database and whose result did not arrive: it may be stored, now
// or in a moment.
type OutcomeUnknownError struct {
	Err error
	// Repeatable is set if a repeated request writes nothing twice, because it has an idempotency key.
	Repeatable bool
}

func (e *OutcomeUnknownError) Error() string {
	return "the write may be stored: no result arrived from the database: " + e.Err.Error()
}

// Unwrap returns why no result arrived.
func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

// IsOutcomeUnknown reports whether an error is an *OutcomeUnknownError.
func IsOutcomeUnknown(err error) bool {
	_, ok := errors.AsType[*OutcomeUnknownError](err)
	return ok
}

// OutcomeOf returns the error of a statement or commit that was sent, as an OutcomeUnknownError unless it proves that nothing was
// stored.
func OutcomeOf(err error) error {
	if err == nil || isRolledBack(err) {
		return err
	}
	return &OutcomeUnknownError{Err: err}
}

// isRolledBack reports whether an error proves that the transaction was rolled back or never sent.
func isRolledBack(err error) bool {
	switch {
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, pgx.ErrTxClosed), errors.Is(err, pgx.ErrTxCommitRollback):
		return true
	case errors.Is(err, pgconn.ErrConnClosed): // pgx also returns it, as safe to retry, if the connection ends after COMMIT was sent
		return false
	case pgconn.SafeToRetry(err):
		return true
	}
	// A FATAL error may be a pooler's, which has lost a server that may have committed.
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.SeverityUnlocalized == "ERROR" && !faultOf(failed.Code).unknownOutcome
}

// ErrKeyReused is returned for an idempotency key that was used with another request.
var ErrKeyReused = errors.New("the idempotency key was used with another request")
