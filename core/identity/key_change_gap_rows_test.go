package identity_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
)

// noteChange writes one change of a made-up key, whose hash is the text.
func noteChange(ctx context.Context, tx *sql.Tx, text string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO key_changes (hash) VALUES ($1)`, []byte(text))
	return err
}

// told turns hashes back into the texts of noteChange.
func told(t *testing.T, hashes []string) []string {
	t.Helper()
	texts := make([]string, len(hashes))
	for i, hash := range hashes {
		text, err := hex.DecodeString(hash)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return texts
}

// Each script is a row of steps: "+a" begins transaction a and writes change a, "=a" commits it, "-a" takes it back, and
// "r:a,b" reads and must be told of a and b, in this order.
func TestKeyChanges_LateCommits(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	for _, script := range [][]string{
		{"r:", "+a", "r:", "=a", "r:a", "r:"},
		{"+a", "+b", "=b", "r:b", "=a", "r:a", "r:"},
		{"+a", "r:", "+b", "=b", "r:b", "r:", "+c", "=a", "r:a", "=c", "r:c", "r:"},
		{"+a", "+b", "+c", "=c", "=a", "r:a,c", "=b", "r:b", "r:"},
		{"+a", "+b", "-a", "r:", "=b", "r:b", "r:"},
		{"+a", "r:", "r:", "r:", "=a", "+b", "r:a", "=b", "r:b"},
	} {
		t.Run(fmt.Sprint(script), func(t *testing.T) {
			open := map[string]*sql.Tx{}
			_, cursor := pgtest.Changes(t, store, "")
			for _, step := range script {
				name := step[1:]
				var err error
				switch step[0] {
				case '+':
					open[name] = pgtest.Begin(t, store)
					err = noteChange(t.Context(), open[name], name)
				case '=':
					err = open[name].Commit()
				case '-':
					err = open[name].Rollback()
				case 'r':
					var hashes []string
					hashes, cursor = pgtest.Changes(t, store, cursor)
					if got := strings.Join(told(t, hashes), ","); got != name[1:] {
						t.Errorf("%s: told of %q", step, got)
					}
				}
				if err != nil {
					t.Fatalf("%s: %v", step, err)
				}
			}
		})
	}
}

// Many writers commit and roll back in any order, some of them holding several changes or dawdling; the union of what a
// reader is told must be all that was committed, nothing of it twice.
func TestKeyChanges_NoGap(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, writing := pgtest.Open(t, url), pgtest.Open(t, url)
	const writers, rounds = 12, 40
	_, cursor := pgtest.Changes(t, store, "")

	var mu sync.Mutex
	want := map[string]int{}
	var work sync.WaitGroup
	for range writers {
		work.Go(func() {
			for range rounds {
				committed, err := writeSome(t.Context(), writing)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, text := range committed {
					want[text]++
				}
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); work.Wait() }()

	got := map[string]int{}
	readings := 0
	for last := false; !last; readings++ {
		select {
		case <-done:
			last = true // what is read from here on sees every commit
		default:
		}
		var hashes []string
		hashes, cursor = pgtest.Changes(t, store, cursor)
		for _, text := range told(t, hashes) {
			got[text]++
		}
	}
	t.Logf("%d changes in %d readings", len(want), readings)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was told differs from what was committed (-want +got):\n%s", diff)
	}
}

// writeSome writes one to three changes in one transaction and returns those that were committed: all or, one time in
// four, none.
func writeSome(ctx context.Context, store *rooms.Rooms) (committed []string, err error) {
	tx, err := store.Pool().BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	for range 1 + rand.IntN(3) {
		text := uuid.NewString()
		if err := noteChange(ctx, tx, text); err != nil {
			return nil, err
		}
		committed = append(committed, text)
		if _, err := tx.ExecContext(ctx, `SELECT pg_sleep($1)`, (time.Duration(rand.IntN(8)) * time.Millisecond).Seconds()); err != nil {
			return nil, err
		}
	}
	if rand.IntN(4) == 0 {
		return nil, tx.Rollback()
	}
	return committed, tx.Commit()
}
