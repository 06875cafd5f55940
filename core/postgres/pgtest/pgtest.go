// Package pgtest gives each test a database of its own on a real Postgres.
//
// The server is the one TEST_DATABASE_URL names, whose user must be allowed to make databases and roles and whose own
// database is not written to, and otherwise a private one that lives as long as the test binary. Without either a test fails; it is never skipped. Databases are
// copies of one migrated template, and any number of test binaries may run at once.
package pgtest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"intents.internal/core/postgres"
)

// Main runs the tests of a package and then removes what New and its siblings made. Call it from TestMain.
func Main(m interface{ Run() int }) {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// New opens a store on a migrated, empty database of the test's own.
func New(tb testing.TB) *postgres.Store {
	tb.Helper()
	return Open(tb, Database(tb))
}

// Database gives the test a migrated, empty database and returns its URL.
func Database(tb testing.TB) string {
	tb.Helper()
	s := serverFor(tb)
	name, err := s.take()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.giveBack(name); err != nil {
			tb.Error(err)
		}
	})
	return s.urlOf(name)
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
func Open(tb testing.TB, url string) *postgres.Store {
	tb.Helper()
	store, err := postgres.Open(url, postgres.Options{MaxConnections: 16, StatementTimeout: 20 * time.Second})
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
