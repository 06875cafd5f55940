package postgres_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
)

// Postgres understands every statement that the runbook has operators run, on the database as it is. None is carried out.
func TestRunbook_Statements(t *testing.T) {
	t.Parallel()
	text := runbook(t)
	store := pgtest.New(t)
	placeholders := strings.NewReplacer("PID", "1", "KEY_ID", uuid.NewString(), "ACCOUNT_ID", uuid.NewString(), "INTENT_ID", uuid.NewString(), "WEBHOOK_ID", uuid.NewString())
	statements := regexp.MustCompile("(?s)`(?:sql|psql \"\\$\\w+\" -c) \"([^\"]+)\"`").FindAllStringSubmatch(text, -1)
	for _, statement := range statements {
		if _, err := store.ExecContext(t.Context(), "EXPLAIN "+placeholders.Replace(statement[1])); err != nil {
			t.Errorf("%s: %v", statement[1], err)
		}
	}
	if len(statements) < 10 {
		t.Errorf("only %d statements were found", len(statements))
	}
}

func runbook(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The runbook finds who holds the feed, for whom no session waits.
func TestRunbook_FeedHolder(t *testing.T) {
	t.Parallel()
	found := regexp.MustCompile("what holds the feed \\| `sql \"([^\"]+)\"`").FindStringSubmatch(runbook(t))
	if found == nil {
		t.Fatal("the runbook has no such query")
	}
	store := pgtest.New(t)
	holder := pgtest.Lock(t, store, "SELECT FROM feed_state FOR UPDATE")
	var pid int
	pgtest.Must(t, holder.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	statement := "SELECT array_agg(pid)::text FROM (" + found[1] + ") AS holders"
	if got := pgtest.LookUp[string](t, store, statement); got != fmt.Sprintf("{%d}", pid) {
		t.Errorf("it names %s, not %d", got, pid)
	}
}
