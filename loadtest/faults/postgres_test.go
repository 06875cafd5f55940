package faults_test

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/embedded"
)

// Postgres stopped as by `pg_ctl -m immediate`, and its postmaster killed, under load: clients get 503 with Retry-After at once and never
// 500, nothing acknowledged is lost, and all succeeds within seconds of its start.
func TestPostgres_Stopped(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"immediately": syscall.SIGQUIT, "postmaster killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := startDatabase(t, embedded.PostgresConfig{})
			_, fleet := startServices(t, db)
			w := startWorkload(t, db, fleet, members, reads, writes, keyedWrites, batches)
			l := startLoad(t, fleet, baselineStream)
			w.awaitMore(50)
			began := time.Now()
			if err := syscall.Kill(db.server.PID(), signal); err != nil {
				t.Fatal(err)
			}
			<-db.server.Done()
			sleep(t, 2*time.Second)
			if err := db.server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			recovered := w.awaitSuccess(time.Now())
			if untold := w.mustBeUnavailable(newJudge(t, l.stop()), began, recovered, 5*time.Second); untold > members {
				t.Errorf("%d intents are stored that no client was told of, more than were in flight", untold)
			}
		})
	}
}

// mustBeUnavailable ends the work. It checks that requests failed, with 503 within a second and nothing else, that all succeeded in time
// again, and what is stored; it returns how many intents are that no client was told of.
func (w *workload) mustBeUnavailable(j judge, began time.Time, recovered, promise time.Duration) (untold int) {
	w.t.Helper()
	all := w.stop()
	failed := all.failed()
	w.t.Logf("the slowest 503 after %s, all succeeded again after %s", failed.slowest(), recovered)
	if len(failed) == 0 {
		w.t.Error("no request failed: the fault had no effect")
	}
	failed.mustBeUnavailable(w.t, began)
	all.mustBeSound(w.t)
	if slow := failed.slowest(); slow > within(time.Second) {
		j.late("a client was told only after %s", slow)
	}
	if recovered > within(promise) {
		j.late("all succeeded again only after %s", recovered)
	}
	return w.mustBeStored()
}

// All five connections of a core wait for a lock that another session holds: clients get 503 within a second, the processes stay alive,
// and all succeeds as soon as the lock is released.
func TestPostgres_PoolExhausted(t *testing.T) {
	t.Parallel()
	db := startDatabase(t, embedded.PostgresConfig{})
	core, fleet := startServices(t, db, "CORE_DATABASE_CONNECTIONS=5")
	w := startWorkload(t, db, fleet, 4*members, reads, writes, keyedWrites, batches)
	l := startLoad(t, fleet, baselineStream)
	w.awaitMore(50)
	dead := 0
	var alive sync.WaitGroup
	watching, stop := context.WithCancel(t.Context())
	alive.Go(func() {
		for watching.Err() == nil {
			if !system.IsOK(t, core.OpsURL+"/livez") || !system.IsOK(t, fleet[0].OpsURL+"/livez") {
				dead++
			}
			sleep(t, watchEvery)
		}
	})
	var began, released time.Time
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `LOCK TABLE transfers IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}
		began = time.Now()
		sleep(t, 4*time.Second)
		released = time.Now()
		return tx.Rollback(ctx)
	})
	recovered := w.awaitSuccess(released)
	stop()
	alive.Wait()
	w.mustBeUnavailable(newJudge(t, l.stop()), began, recovered, time.Second)
	if dead > 0 {
		t.Errorf("/livez failed %d times", dead)
	}
}
