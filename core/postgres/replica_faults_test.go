package postgres_test

import (
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

// The loss of the replica fails no list and slows down only those in progress, and the replica is used again when it is back.
func TestReplica_LostAndBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	owner := uuid.New()
	pgtest.InsertTransfer(t, s.a.Rooms, s.known, owner, pgtest.TransferBody)
	const lost = "lists are read from the primary alone"
	for _, loss := range []struct {
		name        string
		begin, over func() error
	}{
		{"suspended", s.Replica.Suspend, s.Replica.Resume},
		{
			"killed", func() error { return syscall.Kill(s.Replica.PID(), syscall.SIGKILL) },
			func() error { return s.Replica.Restart(t.Context()) },
		},
	} {
		s.a.listsFromTheReplica(t, owner)
		told := strings.Count(s.a.log.String(), lost)
		if err := loss.begin(); err != nil {
			t.Fatal(err)
		}
		var slowest time.Duration
		var mu sync.Mutex
		var work sync.WaitGroup
		for range 8 { // at the moment of the loss
			work.Go(func() {
				started := time.Now()
				if got := pgtest.List(t, s.a.Rooms, owner, intents.TransferFilter{}); len(got) != 1 {
					t.Errorf("%s: %d intents", loss.name, len(got))
				}
				mu.Lock()
				defer mu.Unlock()
				slowest = max(slowest, time.Since(started))
			})
		}
		work.Wait()
		if slowest > 3*time.Second {
			t.Errorf("%s: a list took %s", loss.name, slowest)
		}
		asynctest.Eventually(t, loss.name+": operators are told", func() bool {
			return s.a.CheckReplica(t.Context()) != nil && strings.Count(s.a.log.String(), lost) > told
		})
		before := s.a.from(t, "replica")
		for range 20 {
			if got := pgtest.List(t, s.a.Rooms, owner, intents.TransferFilter{}); len(got) != 1 {
				t.Errorf("%s: %d intents", loss.name, len(got))
			}
		}
		if s.a.from(t, "replica") != before || s.a.fellBack(t, "unreachable") == 0 {
			t.Errorf("%s: lists are still read from the replica, or nobody counts that they are not", loss.name)
		}
		if err := loss.over(); err != nil {
			t.Fatal(err)
		}
		s.a.listsFromTheReplica(t, owner)
	}
}

// Several replicas may share one address. A replica that has not replayed what another has shown does not serve the rest of a
// list.
func TestReplica_SharedAddress(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	late := pgtest.NewReplica(t, servers.Primary)
	pgtest.Exec(t, pgtest.OpenAny(t, late.URL), `SELECT pg_wal_replay_pause()`)
	gate := pgtest.NewGate(t, servers.Replica.URL)
	core := follow(t, servers.Primary.URL, gate.URL)
	owner := uuid.New()
	pgtest.Multiply(t, core.Rooms, pgtest.InsertTransfer(t, core.Rooms, pgtest.LoadRegistry(t, core.Rooms), owner, pgtest.TransferBody).ID, 2499)
	asynctest.Eventually(t, "the first replica has everything", func() bool { return len(core.listsFromTheReplica(t, owner)) == 2500 })
	var once sync.Once
	asynctest.Eventually(t, "a list has met the second replica", func() bool {
		ids := map[uuid.UUID]bool{}
		for summary, err := range core.Intents.Transfers(t.Context(), owner, intents.TransferFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			ids[summary.ID] = true
			once.Do(func() { gate.SetTarget(t, late.URL) })
		}
		if len(ids) != 2500 {
			t.Errorf("%d intents are listed", len(ids))
		}
		return core.fellBack(t, "behind") > 0
	})
}

// A list that replaying cancels on the replica is read from the primary.
func TestReplica_ReplayCancelsList(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	owner := uuid.New()
	// Lists take a while on the replica, and replaying waits for none of them.
	pgtest.Exec(t, s.a.Rooms, `ALTER TABLE transfers RENAME TO kept`)
	pgtest.Exec(t, s.a.Rooms, `CREATE VIEW transfers AS SELECT * FROM kept WHERE NOT pg_is_in_recovery() OR pg_sleep(0.2)::text = ''`)
	pgtest.Exec(t, s.standby, `ALTER SYSTEM SET max_standby_streaming_delay = 0`)
	pgtest.Exec(t, s.standby, `SELECT pg_reload_conf()`)
	pgtest.InsertTransfer(t, s.a.Rooms, s.known, owner, pgtest.TransferBody)
	other := pgtest.Open(t, s.Primary.URL)
	asynctest.Eventually(t, "replaying has cancelled a list", func() bool {
		pgtest.InsertTransfer(t, s.b.Rooms, s.known, uuid.New(), pgtest.TransferBody)
		var work sync.WaitGroup
		work.Go(func() {
			if got := pgtest.List(t, s.a.Rooms, owner, intents.TransferFilter{}); len(got) != 1 {
				t.Errorf("%d intents", len(got))
			}
		})
		work.Go(func() {
			if _, err := other.Pool().ExecContext(t.Context(), `DELETE FROM kept WHERE account_id <> $1`, owner); err != nil {
				t.Error(err)
			}
			if _, err := other.Pool().ExecContext(t.Context(), `VACUUM kept`); err != nil {
				t.Error(err)
			}
		})
		work.Wait()
		return s.a.fellBack(t, "conflict") > 0
	})
	asynctest.Eventually(t, "the replica is in use after a conflict", func() bool { return s.a.CheckReplica(t.Context()) == nil })
}

// After a crash of the primary no acknowledged change is missing, and the replica is used again.
func TestReplica_PrimaryCrashes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	owner := uuid.New()
	pgtest.InsertTransfer(t, s.a.Rooms, s.known, owner, pgtest.TransferBody)
	s.a.listsFromTheReplica(t, owner)
	for crash := range 2 {
		var cursor string
		asynctest.Eventually(t, "the feed is read", func() (read bool) {
			_, next, err := s.b.Identities.KeyChanges(t.Context(), nil, time.Now())
			cursor = next
			return err == nil
		})
		if err := syscall.Kill(s.Primary.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := s.Primary.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		asynctest.Eventually(t, "the primary takes writes", func() bool {
			_, err := s.b.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, s.known, owner, pgtest.TransferBody), intents.Idempotency{})
			return err == nil
		})
		// Ids of transactions whose log is lost are given out again, and the cursor from before the crash counts them as seen.
		if since, _, err := s.b.Identities.KeyChanges(t.Context(), []string{cursor}, time.Now()); err != nil || !since[cursor].Expired {
			t.Errorf("the cursor of before crash %d: %+v, %v", crash, since, err)
		}
		// Connections of before the crash fail once each.
		asynctest.Eventually(t, "lists come from the replica again", func() bool {
			before, listed := s.a.from(t, "replica"), 0
			for _, err := range s.a.Intents.Transfers(t.Context(), owner, intents.TransferFilter{}) {
				if err != nil {
					return false
				}
				listed++
			}
			if want := crash + 2; listed != want {
				t.Errorf("%d intents after crash %d, want %d", listed, crash, want)
			}
			return s.a.from(t, "replica") > before
		})
	}
}
