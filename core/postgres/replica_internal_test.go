package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestReplica_Update(t *testing.T) {
	t.Parallel()
	r := newReplica(nil, nil)
	// Snapshot n is taken at position n and second n.
	for n, step := range []struct {
		cluster                  string
		lsn, replicaLSN, wantLSN int64
	}{
		{"1.00000001.0", 10, 9, 0},
		{"1.00000001.0", 20, 9, 0},
		{"1.00000001.0", 30, 10, 10},
		{"1.00000001.0", 40, 29, 10},
		{"1.00000001.0", 50, 30, 30},
		{"1.00000001.0", 60, 60, 60},
		{"1.00000001.0", 70, 5, 60}, // another replica behind the address
		{"1.00000001.1", 80, 79, 0}, // the primary has crashed
		{"1.00000001.1", 80, 80, 80},
		{"1.00000002.1", 90, 85, 0}, // a standby was promoted
		{"1.00000002.1", 95, 94, 90},
	} {
		r.update(&PrimarySnapshot{Cluster: step.cluster, LSN: step.lsn, takenAt: time.Unix(step.lsn, 0)}, step.replicaLSN)
		var got int64
		if r.replayed != nil {
			got = r.replayed.LSN
		}
		if got != step.wantLSN {
			t.Errorf("step %d: position %d is replayed, want %d", n, got, step.wantLSN)
		}
	}
	if lag := r.lag(time.Unix(100, 0)); lag != 10*time.Second {
		t.Errorf("lag %s, want 10s", lag)
	}
}

func TestFallbackReason(t *testing.T) {
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
