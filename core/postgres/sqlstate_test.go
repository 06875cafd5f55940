package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/uptrace/bun"

	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
)

// Only a wrong statement is no outage, whatever else Postgres reports, and a connection whose server cannot serve is not used again.
func TestUnavailable_EverySQLState(t *testing.T) {
	t.Parallel()
	o := pgtest.Patient()
	o.MaxConnections = 1 // the next statement shows whether the connection was kept
	database := pgtest.OpenWith(t, pgtest.Database(t), o)
	discarded := startsWith("08", "25006", "25P03", "25P04", "57P01", "57P02", "57P03", "58", "XX")
	ofRow, locked := startsWith("22", "23"), startsWith("40001", "40P01", "55P03")
	for state, wrong := range allSQLStates() {
		before := backend(t, database)
		err := database.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx bun.Tx) error {
			_, err := tx.ExecContext(ctx, fmt.Sprintf("DO $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = '%s'; END $$", state))
			return err
		})
		if postgres.SQLState(err) != state || postgres.Unavailable(err) == wrong {
			t.Errorf("%s: %v is an outage: %t", state, err, postgres.Unavailable(err))
		}
		if postgres.IsRowFault(err) != ofRow(state) || postgres.IsLocked(err) != locked(state) {
			t.Errorf("%s is of a row: %t, and a lock's: %t", state, postgres.IsRowFault(err), postgres.IsLocked(err))
		}
		if got := backend(t, database) != before; got != discarded(state) {
			t.Errorf("the connection is discarded after %s: %t", state, got)
		}
	}
}

// startsWith reports whether an SQLSTATE is one of these or in one of these classes.
func startsWith(prefixes ...string) func(state string) bool {
	return func(state string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(state, prefix) })
	}
}

// backend is the process id of the server's end of a connection.
func backend(t *testing.T, store *rooms.Rooms) int {
	t.Helper()
	return pgtest.LookUp[int](t, store, `SELECT pg_backend_pid()`)
}
