package pgtest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/uptrace/bun"

	"intents.internal/core/rooms"
)

// Statements notes what a store asks.
type Statements struct {
	Mu   sync.Mutex
	Text []string
}

// BeforeQuery implements bun.QueryHook.
func (s *Statements) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

// AfterQuery implements bun.QueryHook.
func (s *Statements) AfterQuery(_ context.Context, event *bun.QueryEvent) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Text = append(s.Text, event.Query)
}

// Take returns what was noted about intents and their events, and forgets it.
func (s *Statements) Take() []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	text := slices.DeleteFunc(s.Text, func(query string) bool {
		return !strings.Contains(query, "transfers") && !strings.Contains(query, "events")
	})
	s.Text = nil
	return text
}

// Count returns how many of the statements so far contain the text.
func (s *Statements) Count(text string) (n int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, statement := range s.Text {
		if strings.Contains(statement, text) {
			n++
		}
	}
	return n
}

// PlanWithoutSeqScan is the plan of a statement where a sequential scan is the last resort.
func PlanWithoutSeqScan(t *testing.T, store *rooms.Rooms, statement string) string {
	t.Helper()
	return PlanOf(t, store, statement, "SET LOCAL enable_seqscan = off")
}

// PlanOf is how Postgres would run a statement after these.
func PlanOf(t *testing.T, store *rooms.Rooms, statement string, before ...string) string {
	t.Helper()
	tx, err := store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, setting := range before {
		if _, err := tx.ExecContext(t.Context(), setting); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := tx.QueryContext(t.Context(), "EXPLAIN "+statement)
	if err != nil {
		t.Fatalf("EXPLAIN %s: %v", statement, err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// Watch has a hook see the statements of a store that nobody uses yet.
func Watch(store *rooms.Rooms, hook bun.QueryHook) { store.DB.DB = store.WithQueryHook(hook) }
