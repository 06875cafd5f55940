// Package pgtest gives each test a database of its own on a real Postgres.
//
// The server is the one that TEST_DATABASE_URL names, whose user must be allowed to create databases and roles and whose own database
// is not written to, or a private one for the run of the test binary. Without a server a test fails and is never skipped. Databases
// are copies of one migrated template, and any number of test binaries may run at the same time.
package pgtest

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
)

// Main runs the tests of a package and then removes the databases and the server. TestMain calls it. The tests mostly wait for Postgres, so
// five run at a time, unless -parallel says otherwise.
func Main(m interface{ Run() int }) {
	_ = flag.Set("test.parallel", "5") // the command line is parsed later and overrides it
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// New opens a store on a migrated, empty database of the test's own.
func New(tb testing.TB) *rooms.Rooms {
	tb.Helper()
	return Open(tb, Database(tb))
}

// Database gives the test a migrated, empty database and returns its URL.
func Database(tb testing.TB) string {
	tb.Helper()
	s := serverFor(tb)
	d, err := s.acquireDatabase()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.releaseDatabase(d); err != nil {
			tb.Error(err)
		}
	})
	return s.urlOf(d.name)
}

// Unmigrated makes a database without any table for the test and returns its URL.
func Unmigrated(tb testing.TB) string {
	tb.Helper()
	s := serverFor(tb)
	name := s.nextName()
	if err := s.createEmpty(name); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.drop(name); err != nil {
			tb.Error(err)
		}
	})
	return s.urlOf(name)
}

// Open opens a store on a database and closes it with the test.
func Open(tb testing.TB, url string) *rooms.Rooms {
	tb.Helper()
	return OpenWith(tb, url, Patient())
}

// OpenImpatient is Open, but the store waits for a lock only as long as it does in production.
func OpenImpatient(tb testing.TB, url string) *rooms.Rooms {
	tb.Helper()
	o := Patient()
	o.LockTimeout = 0
	return OpenWith(tb, url, o)
}

// patience is the limit of a test's statements: a busy machine takes long, and only one that hangs must end before go test does.
const patience = 2 * time.Minute

// Patient are the options of Open, for tests that need one more.
func Patient() postgres.Options {
	return postgres.Options{
		MaxConnections: 16, StatementTimeout: patience, AcquireTimeout: patience, ConnectTimeout: patience, LockTimeout: patience,
	}
}

// OpenWith opens a store with options of the test's own and closes it with the test.
func OpenWith(tb testing.TB, url string, o postgres.Options) *rooms.Rooms {
	tb.Helper()
	if started.Load() { // an address of another server is dialed as usual
		o.Dial = serverFor(tb).sessions.dial
	}
	store, err := rooms.Open(url, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

func serverFor(tb testing.TB) *server {
	tb.Helper()
	s, err := shared()
	if err != nil {
		tb.Fatalf("a Postgres for the tests: %v", err)
	}
	return s
}
