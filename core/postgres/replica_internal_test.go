package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// at is the moment of a position of the log, a second each.
func at(position int64) moment {
	return moment{Position: position, Timeline: "00000001", System: 1, taken: time.Unix(position, 0)}
}

func TestMomentsAreReachedInOrder(t *testing.T) {
	t.Parallel()
	r := newReplica(nil, nil)
	want := func(position int64) {
		t.Helper()
		switch {
		case r.reached == nil && position != 0:
			t.Errorf("no moment is reached, want %d", position)
		case r.reached != nil && r.reached.Position != position:
			t.Errorf("moment %d is reached, want %d", r.reached.Position, position)
		}
	}
	for _, step := range []struct{ now, replayed, reached int64 }{
		{10, 9, 0}, {20, 9, 0}, {30, 10, 10}, {40, 29, 20}, {50, 29, 20}, {60, 60, 60}, {70, 5, 60},
	} {
		r.note(at(step.now), step.replayed)
		want(step.reached)
	}
	if behind := r.behind(time.Unix(75, 0)); behind != 15*time.Second {
		t.Errorf("it is %s behind, want 15s", behind)
	}
	// However long the replica stands still, what waits is bounded, and it goes on from there in coarser steps.
	for position := int64(100); position < 100_000; position++ {
		r.note(at(position), 99)
		if len(r.waiting) > maxMoments {
			t.Fatalf("%d moments wait", len(r.waiting))
		}
	}
	r.note(at(100_000), 50_000)
	if r.reached.Position < 49_000 || r.reached.Position > 50_000 {
		t.Errorf("moment %d is reached by position 50000", r.reached.Position)
	}
	// Once it keeps up again, but for the last moment, every moment counts again.
	for position := int64(100_001); position < 100_010; position++ {
		r.note(at(position), position-1)
	}
	want(100_008)
	// When the primary has crashed, those that wait stand on log that may be lost, and all on ids that may be given out again.
	r.note(at(100_009), 100_008)
	recovered := at(100_010)
	recovered.Era = "1"
	r.note(recovered, 100_009)
	want(0)
	r.note(recovered, 100_010)
	want(100_010)
	// Positions of another timeline are no measure for this one's.
	promoted := at(100_011)
	promoted.Timeline = "00000002"
	r.note(promoted, 100_010)
	if r.reached != nil {
		t.Errorf("moment %+v of the timeline before still counts", r.reached)
	}
}

func TestFallbackReasons(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		errChanged: "changed", errBehind: "behind", errDiverged: "diverged", errNotFollowed: "unreachable",
		context.DeadlineExceeded: "unreachable", errors.New("another"): "failed",
		&pgconn.PgError{Code: "40001"}: "conflict", &pgconn.PgError{Code: "57P01"}: "unreachable", &pgconn.PgError{Code: "42703"}: "failed",
	} {
		if got := fallbackReason(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
