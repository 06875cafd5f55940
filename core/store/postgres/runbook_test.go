package postgres_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/store/pgtest"
)

// Postgres understands every statement that the runbook has operators run, on the database as it is. None is carried out.
func TestRunbook_Statements(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	store := pgtest.New(t)
	placeholders := strings.NewReplacer("PID", "1", "KEY_ID", uuid.NewString(), "ACCOUNT_ID", uuid.NewString(), "INTENT_ID", uuid.NewString(), "WEBHOOK_ID", uuid.NewString())
	statements := regexp.MustCompile("(?s)`(?:sql|psql \"\\$\\w+\" -c) \"([^\"]+)\"`").FindAllStringSubmatch(string(text), -1)
	for _, statement := range statements {
		if _, err := store.ExecContext(t.Context(), "EXPLAIN "+placeholders.Replace(statement[1])); err != nil {
			t.Errorf("%s: %v", statement[1], err)
		}
	}
	if len(statements) < 10 {
		t.Errorf("only %d statements were found", len(statements))
	}
}
