package webtest

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/screening"
)

// Mallory is an address that no service serves, and no request of other tests has.
const Mallory = "0x098B716B8Aaf21512996dC57EB0615e2383E2f96"

// Screened is a list of addresses that a service does not serve, at first Mallory's.
type Screened struct {
	Store *rooms.Rooms

	screen *screening.Screen
	path   string
}

// NewScreened makes a list, and the database in which its hits are recorded.
func NewScreened(t *testing.T) *Screened {
	t.Helper()
	s := &Screened{Store: pgtest.New(t), path: filepath.Join(t.TempDir(), "list.txt")}
	s.Append(t, Mallory+" Lazarus Group")
	var err error
	s.screen, err = screening.Open(t.Context(), screening.Config{
		Store: s.Store.Screening, Paths: []string{s.path}, Contact: "appeals@example.com", Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	pgtest.Must(t, err)
	return s
}

// Settings has a service use the list.
func (s *Screened) Settings(c *Settings) {
	c.Intents.Screening, c.Identity.Screening = s.screen, s.screen
}

// Append adds a line to the list's file.
func (s *Screened) Append(t *testing.T, line string) {
	t.Helper()
	file, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	pgtest.Must(t, err)
	_, err = fmt.Fprintln(file, line)
	pgtest.Must(t, err)
	pgtest.Must(t, file.Close())
	if s.screen != nil {
		s.screen.Reload(t.Context())
	}
}

// List lists an address that is served so far.
func (s *Screened) List(t *testing.T, address string) {
	t.Helper()
	s.Append(t, address+" Lazarus Group")
}

// Delist takes a listed address out again.
func (s *Screened) Delist(t *testing.T, address string) {
	t.Helper()
	s.Append(t, "!"+address+" ticket 4711")
}

// NotAllowed is the 403 for these addresses.
func NotAllowed(t *testing.T, paths ...string) Answer {
	t.Helper()
	list := make([]any, len(paths))
	for n, path := range paths {
		list[n] = path
	}
	return Detailed(Refused(t, 403, "ADDRESS_NOT_ALLOWED",
		"This service does not serve an address of this request. Use another address, or ask the operator of this service: appeals@example.com"), "paths", list)
}

// Hits are the recorded hits, each as its stage, side, address, label, environment and whether it has an account, a key and an intent.
func (s *Screened) Hits(t *testing.T) (hits []string) {
	t.Helper()
	_, err := s.screen.WriteHits(t.Context())
	pgtest.Must(t, err)
	rows, err := s.Store.Pool().QueryContext(t.Context(), `SELECT concat_ws(' ', stage, side, address, list_label, environment,
		CASE WHEN account_id IS NOT NULL THEN 'account' END, CASE WHEN key_id IS NOT NULL THEN 'key' END, CASE WHEN intent_id IS NOT NULL THEN 'intent' END)
		FROM screening_hits ORDER BY 1`)
	pgtest.Must(t, err)
	defer rows.Close()
	for rows.Next() {
		var one string
		pgtest.Must(t, rows.Scan(&one))
		hits = append(hits, one)
	}
	pgtest.Must(t, rows.Err())
	return hits
}

// Unlogged holds a log to what it must never have.
func (s *Screened) Unlogged(t *testing.T, written fmt.Stringer) {
	t.Helper()
	log := strings.ToLower(written.String())
	for _, secret := range []string{Mallory, Alice, Bob, screening.TestAddress, "Lazarus", "ticket"} {
		if strings.Contains(log, strings.ToLower(secret)) {
			t.Errorf("the log has %s", secret)
		}
	}
	if log == "" {
		t.Error("nothing is logged, which shows nothing")
	}
}
