package pgtest

import (
	"database/sql"
	"testing"
)

// database is a store with its pool.
type database interface{ Pool() *sql.DB }

// Exec runs a statement as an operator at a prompt would.
func Exec(tb testing.TB, db database, statement string, args ...any) {
	tb.Helper()
	if _, err := db.Pool().ExecContext(tb.Context(), statement, args...); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// LookUp reads one value.
func LookUp[T any](tb testing.TB, db database, query string, args ...any) (value T) {
	tb.Helper()
	if err := db.Pool().QueryRowContext(tb.Context(), query, args...).Scan(&value); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return value
}
