package faults_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// mustHaveKept holds what a workload was told against what is stored: all that was acknowledged is there, under the id that
// was told, and nothing is there twice. It returns how many intents were stored that nobody was told of.
func (c *workload) mustHaveKept(t *testing.T) (untold int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	references := make([]string, 0, len(c.asked))
	for reference := range c.asked {
		references = append(references, reference)
	}
	conn, err := pgx.Connect(t.Context(), c.db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `SELECT reference, id::text FROM transfers WHERE reference = ANY($1)`, references)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	if err != nil {
		t.Fatal(err)
	}
	return c.mustMatch(t, kept)
}

// stored is an intent of the database.
type stored struct{ Reference, ID string }

// mustMatch is mustHaveKept for rows that were read.
func (c *workload) mustMatch(tb testing.TB, rows []stored) (untold int) {
	tb.Helper()
	kept := map[string]string{}
	for _, row := range rows {
		if other, twice := kept[row.Reference]; twice {
			tb.Errorf("one %s made both %s and %s", c.asked[row.Reference], other, row.ID)
		}
		kept[row.Reference] = row.ID
	}
	for reference, id := range c.acknowledged {
		if kept[reference] != id {
			tb.Errorf("a %s was acknowledged as %s and is stored as %q", c.asked[reference], id, kept[reference])
		}
	}
	return len(kept) - len(c.acknowledged)
}
