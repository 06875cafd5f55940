package postgres_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
)

// backslashed is a migrated database whose sessions read a backslash as an escape unless they ask for something else.
func backslashed(t *testing.T) string {
	t.Helper()
	database := pgtest.Unmigrated(t)
	store := pgtest.Open(t, database)
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, store, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET standard_conforming_strings = off', current_database()); END $$")
	return database
}

// forgetful is a pooler that drops what a connection asks for about strings, and nothing else. It returns the database's URL
// through it.
func forgetful(t *testing.T, database string) string {
	t.Helper()
	gate := pgtest.NewGate(t, database)
	gate.Rewrite(func(first []byte) []byte {
		message, err := pgproto3.NewBackend(bytes.NewReader(first), io.Discard).ReceiveStartupMessage()
		begin, ok := message.(*pgproto3.StartupMessage)
		if err != nil || !ok { // a request to cancel
			return first
		}
		delete(begin.Parameters, "standard_conforming_strings")
		rewritten, err := begin.Encode(nil)
		if err != nil {
			t.Error(err)
		}
		return rewritten
	})
	return gate.URL
}

// hostileName would end its string constant and begin a comment if the backslash escaped the quote.
const hostileName = `\' || current_user); --`

func TestStandardStrings_Pinned(t *testing.T) {
	t.Parallel()
	store := pgtest.Open(t, backslashed(t))
	if err := store.CheckMigrated(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := account.New("", "bob@example.com", "", pgtest.Now())
	if err != nil {
		t.Fatal(err)
	}
	b.Name = hostileName
	if err := store.Identities.InsertAccount(t.Context(), b, pgtest.AuditEntry(b.ID, account.SignedUp)); err != nil {
		t.Fatal(err)
	}
	if got := pgtest.LookUp[string](t, store, "SELECT name FROM accounts WHERE email = 'bob@example.com'"); got != hostileName {
		t.Errorf("stored %q, want %q", got, hostileName)
	}
}

func TestStandardStrings_Required(t *testing.T) {
	t.Parallel()
	store := pgtest.Open(t, forgetful(t, backslashed(t)))
	for name, err := range map[string]error{"start": store.CheckMigrated(t.Context()), "use": store.CheckReadWrite(t.Context())} {
		if !errors.Is(err, postgres.ErrBackslashes) || !strings.Contains(err.Error(), `the server reports "off"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := store.Migrate(t.Context()); !errors.Is(err, postgres.ErrBackslashes) {
		t.Errorf("migrate: %v", err)
	}
	// The same pooler before a database of the usual kind is none of core's business.
	if err := pgtest.Open(t, forgetful(t, pgtest.Database(t))).CheckMigrated(t.Context()); err != nil {
		t.Error(err)
	}
}

// A PgBouncer keeps the setting for each client.
func TestStandardStrings_PgBouncer(t *testing.T) {
	t.Parallel()
	if err := pgtest.Open(t, pgtest.Pooler(t, backslashed(t), smallPool...)).CheckMigrated(t.Context()); err != nil {
		t.Error(err)
	}
}
