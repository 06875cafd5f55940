package faults_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// mustHaveKept holds what a crew was told against what is stored: all that was acknowledged is there, under the id that
// was told, and nothing is there twice. It returns how many intents were stored that nobody was told of.
func (c *crew) mustHaveKept(t *testing.T) (untold int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	references := make([]string, 0, len(c.asked))
	for reference := range c.asked {
		references = append(references, reference)
	}
	conn, err := pgx.Connect(t.Context(), shared.stack.Env().DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `SELECT reference, id::text FROM transfers WHERE reference = ANY($1)`, references)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{}
	var reference, id string
	if _, err := pgx.ForEachRow(rows, []any{&reference, &id}, func() error {
		if other, twice := stored[reference]; twice {
			t.Errorf("one %s made both %s and %s", c.asked[reference], other, id)
		}
		stored[reference] = id
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for reference, id := range c.acknowledged {
		if stored[reference] != id {
			t.Errorf("a %s was acknowledged as %s and is stored as %q", c.asked[reference], id, stored[reference])
		}
	}
	return len(stored) - len(c.acknowledged)
}
