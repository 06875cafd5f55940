package delivery_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/events/event"
	"intents.internal/core/events/webhook"
	"intents.internal/core/store/events"
	"intents.internal/core/store/pgtest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// events adds n events to an owner's feed, which are not an intent's.
func (s *service) events(owner event.Owner, n int) {
	s.Helper()
	pgtest.Exec(s.T, s.store, `WITH advanced AS (UPDATE feed_state SET last_position = last_position + $4 RETURNING last_position)
		INSERT INTO feed (position, account_id, environment, type, occurred_at, data)
		SELECT last_position - n, $1, $2, $3, clock_timestamp(), json_build_object('id', gen_random_uuid()) FROM advanced, generate_series(0, $4 - 1) AS n`,
		owner.AccountID, owner.Environment, event.TypeWebhookDisabled, n)
}

// round runs one round for accounts, without leases.
func (s *service) round(accounts ...uuid.UUID) events.Dispatched {
	s.Helper()
	done, err := s.store.Events.DispatchEvents(s.Context(), accounts, events.WebhookLease{})
	if err != nil {
		s.Fatal(err)
	}
	return done
}

// made counts the deliveries of each account.
func (s *service) made() map[uuid.UUID]int {
	s.Helper()
	text := pgtest.LookUp[string](s.T, s.store, `SELECT coalesce(json_object_agg(account_id, made), '{}')::text FROM (
		SELECT account_id, count(*) AS made FROM deliveries JOIN webhooks ON webhooks.id = webhook_id GROUP BY 1) AS accounts`)
	var made map[uuid.UUID]int
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		s.Fatal(err)
	}
	return made
}

// One round makes the deliveries of several accounts, in both environments.
func TestStore_DispatchEvents_SeveralAccounts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var accounts []uuid.UUID
	want := map[uuid.UUID]int{}
	for range 3 {
		owner := s.account()
		for _, environment := range []network.Environment{network.Test, network.Live} {
			owner.Environment = environment
			s.endpoint(owner, map[network.Environment]string{network.Test: "http://127.0.0.1/", network.Live: "https://127.0.0.1/"}[environment])
			s.events(owner, 2)
		}
		accounts = append(accounts, owner.AccountID)
		want[owner.AccountID] = 4
	}
	lease := newLease()
	done, err := s.store.Events.DispatchEvents(t.Context(), accounts, lease)
	if err != nil || len(done.Leased) != 6 || len(done.Behind) != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if diff := cmp.Diff(want, s.made()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if done, err := s.store.Events.DispatchEvents(t.Context(), accounts, lease); err != nil || len(done.Leased) != 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
}

// An account with twenty endpoints that replay has the share of a round that an account with one endpoint has, all of its endpoints
// have a part of it, and no transaction locks endpoints for more than a bounded number of deliveries.
func TestStore_DispatchEvents_Share(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const share, perWrite = 400, 500
	greedy, modest, newer := s.account(), s.account(), s.account()
	for range webhook.MaxEndpoints {
		s.endpoint(greedy, "http://127.0.0.1/")
	}
	s.endpoint(modest, "http://127.0.0.1/")
	s.endpoint(newer, "http://127.0.0.1/")
	s.events(greedy, 100)
	s.events(modest, 1000)
	s.events(newer, 1)
	accounts := []uuid.UUID{greedy.AccountID, modest.AccountID, newer.AccountID}
	done := s.round(accounts...)
	if diff := cmp.Diff(map[uuid.UUID]int{greedy.AccountID: share, modest.AccountID: share, newer.AccountID: 1}, s.made()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uuid.UUID{greedy.AccountID, modest.AccountID}, done.Behind); diff != "" {
		t.Errorf("behind (-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(DISTINCT webhook_id) FROM deliveries"); n != webhook.MaxEndpoints+2 {
		t.Errorf("%d endpoints have deliveries", n)
	}
	for len(done.Behind) > 0 {
		done = s.round(done.Behind...)
	}
	if diff := cmp.Diff(map[uuid.UUID]int{greedy.AccountID: 2000, modest.AccountID: 1000, newer.AccountID: 1}, s.made()); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, s.store, "SELECT max(n) FROM (SELECT count(*) AS n FROM deliveries GROUP BY xmin::text) AS writes"); n > perWrite {
		t.Errorf("a transaction made %d deliveries, want at most %d", n, perWrite)
	}
	if behind, err := s.store.Events.AccountsBehind(t.Context()); err != nil || len(behind) != 0 {
		t.Errorf("%d are behind, %v", len(behind), err)
	}
}

// An endpoint whose row or delivery is locked for long keeps no other from its events, and has its own later.
func TestStore_DispatchEvents_Locked(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{
		"endpoint": "SELECT FROM webhooks WHERE id = $1 FOR UPDATE",
		"delivery": "SELECT FROM deliveries WHERE webhook_id = $1 FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			owners := []event.Owner{s.account(), s.account(), s.account()}
			var accounts []uuid.UUID
			var endpoints []*webhook.Endpoint
			for _, owner := range owners {
				e, _ := s.endpoint(owner, "http://127.0.0.1/")
				s.events(owner, 1)
				accounts, endpoints = append(accounts, owner.AccountID), append(endpoints, e)
			}
			if name == "delivery" {
				s.round(accounts...)
				pgtest.Exec(t, s.store, "UPDATE webhooks SET cursor = 0")
				pgtest.Exec(t, s.store, "UPDATE deliveries SET status = 'failed', next_attempt_at = NULL")
			}
			unlock := s.lock(lock, endpoints[1].ID)
			_, err := s.store.Events.DispatchEvents(t.Context(), accounts, events.WebhookLease{})
			if failed := err != nil; failed != (name == "delivery") {
				t.Errorf("the round: %v", err)
			}
			due := func() int {
				return pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM deliveries WHERE status = 'pending'")
			}
			if n := due(); n != 2 {
				t.Errorf("%d deliveries are due", n)
			}
			unlock()
			behind, err := s.store.Events.AccountsBehind(t.Context())
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
func TestStore_DispatchEvents_Rate(t *testing.T) {
	t.Parallel()
	s := newService(t)
	owner := s.account()
	e, _ := s.endpoint(owner, "http://127.0.0.1/")
	s.events(owner, 2000)
	for done := s.round(owner.AccountID); len(done.Behind) > 0; {
		done = s.round(done.Behind...)
	}
	const spread = `SELECT extract(epoch FROM max(next_attempt_at) - min(next_attempt_at))::float8 FROM deliveries WHERE webhook_id = $1`
	// 1,000 at once and 100 a second: the last is due ten seconds after the first.
	if seconds := pgtest.LookUp[float64](t, s.store, spread, e.ID); seconds < 9 {
		t.Errorf("the deliveries are spread over %v seconds", seconds)
	}
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM deliveries WHERE next_attempt_at <= created_at"); n < 1000 || n > 1999 {
		t.Errorf("%d deliveries are due at once", n)
	}
}

// Accounts are found in the order in which they have waited: a replay waits since it was asked for, not since its events.
func TestStore_AccountsBehind(t *testing.T) {
	t.Parallel()
	s := newService(t)
	replaying, waiting, caughtUp := s.account(), s.account(), s.account()
	for _, owner := range []event.Owner{replaying, waiting, caughtUp} {
		s.endpoint(owner, "http://127.0.0.1/")
		s.events(owner, 1)
	}
	s.round(caughtUp.AccountID)
	pgtest.Exec(t, s.store, "UPDATE webhooks SET updated_at = now() - interval '1 day'")
	pgtest.Exec(t, s.store, "UPDATE feed SET position = (extract(epoch FROM now() - interval '1 minute') * 1000000)::bigint WHERE account_id = $1", waiting.AccountID)
	pgtest.Exec(t, s.store, "UPDATE feed SET position = (extract(epoch FROM now() - interval '20 days') * 1000000)::bigint WHERE account_id = $1", replaying.AccountID)
	pgtest.Exec(t, s.store, "UPDATE webhooks SET cursor = 0, updated_at = now() WHERE account_id IN ($1, $2)", replaying.AccountID, waiting.AccountID)
	pgtest.Exec(t, s.store, "UPDATE webhooks SET updated_at = now() - interval '1 day' WHERE account_id = $1", waiting.AccountID)
	behind, err := s.store.Events.AccountsBehind(t.Context())
	if diff := cmp.Diff([]uuid.UUID{waiting.AccountID, replaying.AccountID}, behind); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
}

// Types that another release has stored, of an event and of a filter, end nobody's round, and their event is sent as it is.
func TestDispatcher_UnknownTypes(t *testing.T) {
	t.Parallel()
	s, in, other := newService(t), newInbox(t), newInbox(t)
	owner, neighbour := s.account(), s.account()
	e, _ := s.endpoint(owner, in.url)
	s.endpoint(neighbour, other.url)
	pgtest.Exec(t, s.store, "UPDATE webhooks SET types = '{transfer.created,transfer.teleported,orbit.*}' WHERE id = $1", e.ID)
	s.intent(owner)
	s.intent(neighbour)
	for _, kind := range []string{"transfer.teleported", "orbit.entered", "moon.entered"} {
		pgtest.Exec(t, s.store, `WITH advanced AS (UPDATE feed_state SET last_position = 1 + greatest(last_position, $3) RETURNING last_position)
			INSERT INTO feed (position, account_id, environment, type, occurred_at, data)
			SELECT last_position, $1, 'test', $2, now(), '{"id": 7, "n": 1}' FROM advanced`, owner.AccountID, kind, s.store.Now().UnixMicro())
	}
	s.start()
	s.intent(owner)
	asynctest.Eventually(t, "all have theirs", func() bool { return len(in.requests()) == 4 && len(other.requests()) == 1 })
	types := map[string]int{}
	for _, d := range s.deliveries(e) {
		types[string(d.Type)]++
	}
	if diff := cmp.Diff(map[string]int{"transfer.created": 2, "transfer.teleported": 1, "orbit.entered": 1}, types); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One process dispatches; another takes over when it stops or is gone.
func TestStore_AcquireDispatchLease(t *testing.T) {
	t.Parallel()
	s := newService(t)
	first, second := newLease(), newLease()
	hold := func(lease events.WebhookLease, want bool) {
		t.Helper()
		if held, err := s.store.Events.AcquireDispatchLease(t.Context(), lease); err != nil || held != want {
			t.Errorf("held %t, want %t; %v", held, want, err)
		}
	}
	hold(first, true)
	hold(second, false)
	hold(first, true)
	if err := s.store.Events.ReleaseDispatchLease(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	hold(second, false)
	if err := s.store.Events.ReleaseDispatchLease(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	hold(second, true)
	pgtest.Exec(t, s.store, "UPDATE leases SET lease_until = now() - interval '1 second'")
	hold(first, true)
	hold(second, false)
}

// While ten accounts replay to twenty endpoints each, through two processes, a newer account's events are dispatched, and what owners
// do to endpoints that replay waits for no round.
func TestDispatcher_Replays(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const accounts, events = 10, 400
	endpoints := map[uuid.UUID][]*webhook.Endpoint{}
	for range accounts {
		owner := s.account()
		for range webhook.MaxEndpoints {
			e, _ := s.endpoint(owner, "http://127.0.0.1:9/")
			endpoints[owner.AccountID] = append(endpoints[owner.AccountID], e)
		}
		s.events(owner, events)
	}
	newer := s.account()
	e, _ := s.endpoint(newer, "http://127.0.0.1:9/")
	pgtest.Exec(t, s.store, "UPDATE webhooks SET cursor = 0")
	s.start()
	s.start()
	asynctest.Eventually(t, "the replays run", func() bool { return len(s.made()) == accounts })
	s.intent(newer)
	asynctest.Eventually(t, "the newer account's event is dispatched", func() bool { return len(s.deliveries(e)) == 1 })
	if total := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM deliveries"); total >= accounts*webhook.MaxEndpoints*events {
		t.Errorf("all %d deliveries of the replays are made by then", total)
	}
	for _, of := range endpoints {
		s.change(of[0], webhook.Change{Enabled: new(false)})
		s.rotate(of[1], time.Hour)
		s.remove(of[2])
	}
}
