package postgres_test

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
	config, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); work.Wait() })
	work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { forget(client, config) })
		}
	})
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: listener.Addr().String(),
		Path: "/" + config.Database, RawQuery: "sslmode=disable",
	}
	return through.String()
}

func forget(client net.Conn, config *pgx.ConnConfig) {
	defer client.Close()
	first, err := pgproto3.NewBackend(client, client).ReceiveStartupMessage()
	if err != nil {
		return
	}
	begin, ok := first.(*pgproto3.StartupMessage)
	if !ok { // a request to cancel
		return
	}
	delete(begin.Parameters, "standard_conforming_strings")
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	server, err := net.Dial(network, address) //nolint:noctx // it is local and ends with the client
	if err != nil {
		return
	}
	defer server.Close()
	message, err := begin.Encode(nil)
	if err != nil {
		return
	}
	if _, err := server.Write(message); err != nil {
		return
	}
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	_, _ = io.Copy(client, server)
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
