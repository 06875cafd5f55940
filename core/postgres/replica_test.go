package postgres_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

// follower is a core's store with a replica, which it follows as long as the test runs.
type follower struct {
	*rooms.Rooms

	metrics *prometheus.Registry
	log     asynctest.Buffer
}

func follow(t *testing.T, primary, replica string) *follower {
	t.Helper()
	f := &follower{metrics: prometheus.NewPedanticRegistry()}
	var err error
	f.Rooms, err = rooms.Open(primary, postgres.Options{ReadURL: replica, StatementTimeout: 2 * time.Minute, Metrics: f.metrics})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { f.FollowReplica(ctx, slog.New(slog.NewJSONHandler(&f.log, nil))) })
	t.Cleanup(func() {
		cancel()
		work.Wait()
		_ = f.Close()
	})
	return f
}

// from is how many batches of lists were read there.
func (f *follower) from(t *testing.T, source string) float64 {
	t.Helper()
	return metricstest.Values(t, f.metrics)["intents_core_list_batches_total "+source]
}

// fellBack is how many lists turned to the primary for this reason.
func (f *follower) fellBack(t *testing.T, reason string) float64 {
	t.Helper()
	return metricstest.Values(t, f.metrics)["intents_core_replica_fallbacks_total "+reason]
}

// listsFromTheReplica waits until the account's lists come from there, and returns the one that did.
func (f *follower) listsFromTheReplica(t *testing.T, owner uuid.UUID) (found []transfer.Summary) {
	t.Helper()
	asynctest.Eventually(t, "the list comes from the replica", func() bool {
		before := f.from(t, "replica")
		found = pgtest.List(t, f.Rooms, owner, intents.TransferFilter{})
		return f.from(t, "replica") > before
	})
	return found
}

// stage is two cores with one replica, and what they know.
type stage struct {
	pgtest.Replicated

	a, b  *follower
	known *registry.Snapshot
	// standby reaches the replica as an operator would.
	standby *rooms.Rooms
}

func newStage(t *testing.T) stage {
	t.Helper()
	servers := pgtest.NewReplicated(t)
	s := stage{
		Replicated: servers, standby: pgtest.OpenAny(t, servers.Replica.URL),
		a: follow(t, servers.Primary.URL, servers.Replica.URL), b: follow(t, servers.Primary.URL, servers.Replica.URL),
	}
	s.known = pgtest.LoadRegistry(t, s.a.Rooms)
	return s
}

func TestReplica_Lists(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	owner := uuid.New()
	first := pgtest.InsertTransfer(t, s.a.Rooms, s.known, owner, pgtest.TransferBody)
	second := pgtest.InsertTransfer(t, s.a.Rooms, s.known, owner, pgtest.SwapBody)
	scans := func() int {
		return pgtest.LookUp[int](t, s.standby, `SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relname = 'transfers'`)
	}
	before := scans()
	want := []transfer.Summary{second.Summary(), first.Summary()}
	if diff := cmp.Diff(want, s.b.listsFromTheReplica(t, owner)); diff != "" {
		t.Errorf("the list of the replica (-want +got):\n%s", diff)
	}
	asynctest.Eventually(t, "the replica has counted the scan", func() bool { return scans() > before })
	asynctest.Eventually(t, "operators are told that the replica is in use", func() bool {
		return s.b.CheckReplica(t.Context()) == nil && strings.Contains(s.b.log.String(), `"msg":"lists are read from the replica"`)
	})
	// Small pages and everything else are asked of the primary.
	primary, replica := s.b.from(t, "primary"), s.b.from(t, "replica")
	if got := pgtest.List(t, s.b.Rooms, owner, intents.TransferFilter{Limit: 50}); len(got) != 2 {
		t.Errorf("%d intents on a page", len(got))
	}
	if s.b.from(t, "primary") != primary+1 || s.b.from(t, "replica") != replica {
		t.Error("a small page was read from the replica")
	}
	if _, err := s.b.Intents.Transfer(t.Context(), owner, first.ID); err != nil {
		t.Error(err)
	}
	if open := postgres.ReplicaConnectionsInUse(s.b.DB); open != 0 {
		t.Errorf("%d connections to the replica are still held", open)
	}
	// Core's role needs to read its tables on both servers, and no privilege of a superuser.
	pgtest.Exec(t, s.a.Rooms, `CREATE ROLE plain LOGIN IN ROLE pg_read_all_data`)
	as := func(url string) string { return strings.Replace(url, "intents@", "plain@", 1) }
	plain := follow(t, as(s.Primary.URL), as(s.Replica.URL))
	if diff := cmp.Diff(want, plain.listsFromTheReplica(t, owner)); diff != "" {
		t.Errorf("the list of a role without privileges (-want +got):\n%s", diff)
	}
}

// A replica that stops replaying serves only the accounts that have not changed since.
func TestReplica_ReadYourWritesWhilePaused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	writer, bystander := uuid.New(), uuid.New()
	old := pgtest.InsertTransfer(t, s.a.Rooms, s.known, writer, pgtest.TransferBody)
	pgtest.InsertTransfer(t, s.a.Rooms, s.known, bystander, pgtest.TransferBody)
	s.a.listsFromTheReplica(t, writer)
	s.b.listsFromTheReplica(t, bystander)
	pgtest.Exec(t, s.standby, `SELECT pg_wal_replay_pause()`)
	asynctest.Eventually(t, "replay is paused", func() bool {
		return pgtest.LookUp[string](t, s.standby, `SELECT pg_get_wal_replay_pause_state()`) == "paused"
	})

	fresh := pgtest.InsertTransfer(t, s.a.Rooms, s.known, writer, pgtest.TransferBody)
	cancelled, err := s.b.Intents.Transition(t.Context(), writer, old.ID, transfer.Command{Trigger: transfer.Cancel})
	if err != nil {
		t.Fatal(err)
	}
	want := []transfer.Summary{fresh.Summary(), cancelled.Summary()}
	for name, core := range map[string]*follower{"the core that wrote": s.a, "another core": s.b} {
		if diff := cmp.Diff(want, pgtest.List(t, core.Rooms, writer, intents.TransferFilter{})); diff != "" {
			t.Errorf("%s lists (-want +got):\n%s", name, diff)
		}
		if core.fellBack(t, "changed") == 0 {
			t.Errorf("%s does not know that the account has changed", name)
		}
		if got := core.listsFromTheReplica(t, bystander); len(got) != 1 {
			t.Errorf("%s lists %d intents of the account that did not change", name, len(got))
		}
	}
	asynctest.Eventually(t, "the lag is told", func() bool {
		all := metricstest.Values(t, s.a.metrics)
		return all["intents_core_replica_lag_seconds"] > 0.3 && all["intents_core_replica_lag_bytes"] > 0
	})
	pgtest.Exec(t, s.standby, `SELECT pg_wal_replay_resume()`)
	for _, core := range []*follower{s.a, s.b} {
		if diff := cmp.Diff(want, core.listsFromTheReplica(t, writer)); diff != "" {
			t.Errorf("after replay went on (-want +got):\n%s", diff)
		}
	}
}

// A list that has begun on the replica ends on the primary if the replica is lost.
func TestReplica_LostDuringList(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	owner := uuid.New()
	pgtest.Multiply(t, s.a.Rooms, pgtest.InsertTransfer(t, s.a.Rooms, s.known, owner, pgtest.TransferBody).ID, 2499)
	s.a.listsFromTheReplica(t, owner)
	// The copies have no events: the replica must have them all the same.
	asynctest.Eventually(t, "the replica has everything", func() bool {
		return len(pgtest.List(t, s.a.Rooms, owner, intents.TransferFilter{})) == 2500
	})
	primary, replica := s.a.from(t, "primary"), s.a.from(t, "replica")
	var ids []uuid.UUID
	for summary, err := range s.a.Intents.Transfers(t.Context(), owner, intents.TransferFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if ids = append(ids, summary.ID); len(ids) == 1 {
			if err := s.Replica.Stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
	newestFirst := func(a, b uuid.UUID) int { return -slices.Compare(a[:], b[:]) }
	if len(ids) != 2500 || !slices.IsSortedFunc(ids, newestFirst) || len(slices.Compact(ids)) != 2500 {
		t.Errorf("%d intents, or not newest first, or not each once", len(ids))
	}
	if r, p := s.a.from(t, "replica")-replica, s.a.from(t, "primary")-primary; r+p != 3 || p < 2 {
		t.Errorf("%v batches from the replica and %v from the primary, want 1 and 2", r, p)
	}
}

// A promoted replica has a timeline of its own.
func TestReplica_Promoted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	owner := uuid.New()
	made := pgtest.InsertTransfer(t, s.a.Rooms, s.known, owner, pgtest.TransferBody)
	s.a.listsFromTheReplica(t, owner)
	if !pgtest.LookUp[bool](t, s.standby, `SELECT pg_promote()`) {
		t.Fatal("it was not promoted")
	}
	pgtest.Exec(t, s.standby, `DELETE FROM transfers`)
	for range 3 {
		if diff := cmp.Diff([]transfer.Summary{made.Summary()}, pgtest.List(t, s.a.Rooms, owner, intents.TransferFilter{})); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	}
	asynctest.Eventually(t, "operators are told", func() bool {
		err := s.a.CheckReplica(t.Context())
		return err != nil && strings.Contains(err.Error(), "is no standby of the primary's")
	})
	if got := s.a.fellBack(t, "diverged"); got == 0 {
		t.Error("no list is counted as refused by a server that diverged")
	}
	before := s.a.from(t, "replica")
	pgtest.List(t, s.a.Rooms, owner, intents.TransferFilter{})
	if s.a.from(t, "replica") != before {
		t.Error("the promoted server is still asked")
	}
}

// A standby of the previous primary is on another timeline: it may have changes that were lost, and it lacks those made since.
func TestReplica_StandbyOfAnotherPrimary(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	left := pgtest.NewReplica(t, servers.Primary)
	promoted := pgtest.OpenAny(t, servers.Replica.URL)
	if !pgtest.LookUp[bool](t, promoted, `SELECT pg_promote()`) {
		t.Fatal("it was not promoted")
	}
	core := follow(t, servers.Replica.URL, left.URL)
	owner := uuid.New()
	made := pgtest.InsertTransfer(t, core.Rooms, pgtest.LoadRegistry(t, core.Rooms), owner, pgtest.TransferBody)
	// The previous primary writes more than the new one, so that its standby is ahead by position.
	pgtest.Exec(t, pgtest.Open(t, servers.Primary.URL), `CREATE TABLE more AS SELECT n FROM generate_series(1, 100000) AS n`)
	asynctest.Eventually(t, "operators are told", func() bool {
		err := core.CheckReplica(t.Context())
		return err != nil && strings.Contains(err.Error(), "is no standby of the primary's")
	})
	if diff := cmp.Diff([]transfer.Summary{made.Summary()}, pgtest.List(t, core.Rooms, owner, intents.TransferFilter{})); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if got := core.from(t, "replica"); got != 0 {
		t.Errorf("%v lists were read from it", got)
	}
}
