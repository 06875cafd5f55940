package pgtest

import (
	"testing"

	"intents.internal/core/store/postgres"
)

// Exec runs a statement as an operator at a prompt would.
func Exec(tb testing.TB, store *postgres.Store, statement string, args ...any) {
	tb.Helper()
	if _, err := store.Pool().ExecContext(tb.Context(), statement, args...); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// LookUp reads one value.
func LookUp[T any](tb testing.TB, store *postgres.Store, query string, args ...any) (value T) {
	tb.Helper()
	if err := store.Pool().QueryRowContext(tb.Context(), query, args...).Scan(&value); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return value
}
