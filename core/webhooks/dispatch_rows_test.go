package webhooks_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
)

// round runs one round for accounts, without leases.
func (s fixture) round(accounts ...uuid.UUID) webhooks.Dispatched {
	s.Helper()
	done, err := s.Store.Webhooks.DispatchEvents(s.Context(), accounts, webhooks.Lease{})
	if err != nil {
		s.Fatal(err)
	}
	return done
}

// One round makes the deliveries of several accounts, in both environments.
func TestDispatchEvents_SeveralAccounts(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	var accounts []uuid.UUID
	want := map[uuid.UUID]int{}
	for range 3 {
		owner := s.Account()
		for _, environment := range []network.Environment{network.Test, network.Live} {
			owner.Environment = environment
			s.Endpoint(owner, "https://example.com/")
			s.AddEvents(owner, 2)
		}
		accounts = append(accounts, owner.AccountID)
		want[owner.AccountID] = 4
	}
	lease := newLease()
	done, err := s.Store.Webhooks.DispatchEvents(t.Context(), accounts, lease)
	if err != nil || len(done.Leased) != 6 || len(done.Behind) != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if diff := cmp.Diff(want, s.Made()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if done, err := s.Store.Webhooks.DispatchEvents(t.Context(), accounts, lease); err != nil || len(done.Leased) != 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
}

// An account with twenty endpoints that replay has the share of a round that an account with one endpoint has, all of its endpoints
// have a part of it, and no transaction locks endpoints for more than a bounded number of deliveries.
func TestDispatchEvents_Share(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	const share, perWrite = 400, 500
	greedy, modest, newer := s.Account(), s.Account(), s.Account()
	for range webhooks.MaxEndpoints {
		s.Endpoint(greedy, "https://example.com/")
	}
	s.Endpoint(modest, "https://example.com/")
	s.Endpoint(newer, "https://example.com/")
	s.AddEvents(greedy, 100)
	s.AddEvents(modest, 1000)
	s.AddEvents(newer, 1)
	accounts := []uuid.UUID{greedy.AccountID, modest.AccountID, newer.AccountID}
	done := s.round(accounts...)
	if diff := cmp.Diff(map[uuid.UUID]int{greedy.AccountID: share, modest.AccountID: share, newer.AccountID: 1}, s.Made()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uuid.UUID{greedy.AccountID, modest.AccountID}, done.Behind); diff != "" {
		t.Errorf("behind (-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, s.Store, "SELECT count(DISTINCT webhook_id) FROM deliveries"); n != webhooks.MaxEndpoints+2 {
		t.Errorf("%d endpoints have deliveries", n)
	}
	for len(done.Behind) > 0 {
		done = s.round(done.Behind...)
	}
	if diff := cmp.Diff(map[uuid.UUID]int{greedy.AccountID: 2000, modest.AccountID: 1000, newer.AccountID: 1}, s.Made()); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, s.Store, "SELECT max(n) FROM (SELECT count(*) AS n FROM deliveries GROUP BY xmin::text) AS writes"); n > perWrite {
		t.Errorf("a transaction made %d deliveries, want at most %d", n, perWrite)
	}
	if behind, err := s.Store.Webhooks.AccountsBehind(t.Context()); err != nil || len(behind) != 0 {
		t.Errorf("%d are behind, %v", len(behind), err)
	}
}

// An endpoint whose row or delivery is locked for long keeps no other from its events, and has its own later.
func TestDispatchEvents_Locked(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{
		"endpoint": "SELECT FROM webhooks WHERE id = $1 FOR UPDATE",
		"delivery": "SELECT FROM deliveries WHERE webhook_id = $1 FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			owners := []feed.Owner{s.Account(), s.Account(), s.Account()}
			var accounts []uuid.UUID
			var endpoints []*webhooks.Endpoint
			for _, owner := range owners {
				e, _ := s.Endpoint(owner, "https://example.com/")
				s.AddEvents(owner, 1)
				accounts, endpoints = append(accounts, owner.AccountID), append(endpoints, e)
			}
			if name == "delivery" {
				s.round(accounts...)
				pgtest.Exec(t, s.Store, "UPDATE webhooks SET cursor = 0")
				pgtest.Exec(t, s.Store, "UPDATE deliveries SET status = 'failed', next_attempt_at = NULL")
			}
			unlock := s.Lock(lock, endpoints[1].ID)
			_, err := s.Store.Webhooks.DispatchEvents(t.Context(), accounts, webhooks.Lease{})
			if failed := err != nil; failed != (name == "delivery") {
				t.Errorf("the round: %v", err)
			}
			due := func() int {
				return pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM deliveries WHERE status = 'pending'")
			}
			if n := due(); n != 2 {
				t.Errorf("%d deliveries are due", n)
			}
			unlock()
			behind, err := s.Store.Webhooks.AccountsBehind(t.Context())
			if diff := cmp.Diff(accounts[1:2], behind); diff != "" || err != nil {
				t.Fatalf("behind (-want +got):\n%s%v", diff, err)
			}
			s.round(behind...)
			if n := due(); n != 3 {
				t.Errorf("%d deliveries are due in the end", n)
			}
		})
	}
}

// An endpoint has a rate: of many events at once, as in a replay, the rest is due later.
func TestDispatchEvents_Rate(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, "https://example.com/")
	s.AddEvents(owner, 2000)
	for done := s.round(owner.AccountID); len(done.Behind) > 0; {
		done = s.round(done.Behind...)
	}
	const spread = `SELECT extract(epoch FROM max(next_attempt_at) - min(next_attempt_at))::float8 FROM deliveries WHERE webhook_id = $1`
	// 1,000 at once and 100 a second: the last is due ten seconds after the first.
	if seconds := pgtest.LookUp[float64](t, s.Store, spread, e.ID); seconds < 9 {
		t.Errorf("the deliveries are spread over %v seconds", seconds)
	}
	if n := pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM deliveries WHERE next_attempt_at <= created_at"); n < 1000 || n > 1999 {
		t.Errorf("%d deliveries are due at once", n)
	}
}

// Accounts are found in the order in which they have waited: a replay waits since it was asked for, not since its events.
func TestAccountsBehind(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	replaying, waiting, caughtUp := s.Account(), s.Account(), s.Account()
	for _, owner := range []feed.Owner{replaying, waiting, caughtUp} {
		s.Endpoint(owner, "https://example.com/")
		s.AddEvents(owner, 1)
	}
	s.round(caughtUp.AccountID)
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET updated_at = now() - interval '1 day'")
	pgtest.Exec(t, s.Store, "UPDATE feed SET position = (extract(epoch FROM now() - interval '1 minute') * 1000000)::bigint WHERE account_id = $1", waiting.AccountID)
	pgtest.Exec(t, s.Store, "UPDATE feed SET position = (extract(epoch FROM now() - interval '20 days') * 1000000)::bigint WHERE account_id = $1", replaying.AccountID)
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET cursor = 0, updated_at = now() WHERE account_id IN ($1, $2)", replaying.AccountID, waiting.AccountID)
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET updated_at = now() - interval '1 day' WHERE account_id = $1", waiting.AccountID)
	behind, err := s.Store.Webhooks.AccountsBehind(t.Context())
	if diff := cmp.Diff([]uuid.UUID{waiting.AccountID, replaying.AccountID}, behind); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
}

// One process dispatches; another takes over when it stops or is gone.
func TestAcquireDispatchLease(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	first, second := newLease(), newLease()
	hold := func(lease webhooks.Lease, want bool) {
		t.Helper()
		if held, err := s.Store.Webhooks.AcquireDispatchLease(t.Context(), lease); err != nil || held != want {
			t.Errorf("held %t, want %t; %v", held, want, err)
		}
	}
	hold(first, true)
	hold(second, false)
	hold(first, true)
	if err := s.Store.Webhooks.ReleaseDispatchLease(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	hold(second, false)
	if err := s.Store.Webhooks.ReleaseDispatchLease(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	hold(second, true)
	pgtest.Exec(t, s.Store, "UPDATE leases SET lease_until = now() - interval '1 second'")
	hold(first, true)
	hold(second, false)
}
