package postgres_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/uptrace/bun"

	"intents.internal/core/store/postgres"
)

// statements notes what a store asks.
type statements struct {
	mu   sync.Mutex
	text []string
}

func (s *statements) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (s *statements) AfterQuery(_ context.Context, event *bun.QueryEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, event.Query)
}

// take returns what was noted about intents and their events, and forgets it.
func (s *statements) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := slices.DeleteFunc(s.text, func(query string) bool {
		return !strings.Contains(query, "transfers") && !strings.Contains(query, "events")
	})
	s.text = nil
	return text
}

func planWithoutSeqScan(t *testing.T, store *postgres.Store, statement string) string {
	t.Helper()
	return planOf(t, store, statement, "SET LOCAL enable_seqscan = off")
}

// planOf is how Postgres would run a statement after these.
func planOf(t *testing.T, store *postgres.Store, statement string, before ...string) string {
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
