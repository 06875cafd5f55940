package webhooks_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/outbound"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
)

// webhooks is a database with accounts and endpoints.
type fixture struct{ *database }

func newFixture(t *testing.T) fixture {
	t.Helper()
	return fixture{newDatabase(t, outbound.NewNetworks(nil))}
}

// leased makes endpoints by name whose leases end in a moment, all of one process.
func (s fixture) leased(owner feed.Owner, lease webhooks.Lease, names ...string) (ids map[string]uuid.UUID) {
	s.Helper()
	ids = map[string]uuid.UUID{}
	for _, name := range names {
		e, _ := s.Endpoint(owner, "https://example.com/")
		ids[name] = e.ID
	}
	pgtest.Exec(s.T, s.Store, "UPDATE webhooks SET lease_holder = $1, lease_until = now() + interval '1 minute'", lease.Holder)
	return ids
}

// namesOf are the sorted names of some of the endpoints.
func namesOf(ids map[string]uuid.UUID, some []uuid.UUID) (names []string) {
	for name, id := range ids {
		if slices.Contains(some, id) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// leasedFor are the sorted names of the endpoints whose leases last longer than a time.
func (s fixture) leasedFor(ids map[string]uuid.UUID, interval string) []string {
	s.Helper()
	var some []uuid.UUID
	for _, id := range ids {
		if pgtest.LookUp[bool](s.T, s.Store, "SELECT EXISTS (SELECT FROM webhooks WHERE id = $1 AND lease_until > now() + $2::interval)", id, interval) {
			some = append(some, id)
		}
	}
	return namesOf(ids, some)
}

// A locked lease is not lost and does not delay the others. A lease is lost only to another holder, or with its endpoint.
func TestRenewLeases(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	lease := newLease()
	ids := s.leased(s.Account(), lease, "free", "locked", "taken", "taken and locked")
	ids["deleted"] = uuid.New()
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET lease_holder = gen_random_uuid() WHERE id IN ($1, $2)", ids["taken"], ids["taken and locked"])
	unlock := s.Lock("SELECT FROM webhooks WHERE id IN ($1, $2) FOR UPDATE", ids["locked"], ids["taken and locked"])
	renew := func(locked []string, renewed ...string) {
		t.Helper()
		got, err := s.Store.Webhooks.RenewLeases(t.Context(), lease, slices.Collect(maps.Values(ids)))
		if err != nil {
			t.Fatal(err)
		}
		want := [][]string{{"deleted", "taken", "taken and locked"}, locked, renewed}
		if diff := cmp.Diff(want, [][]string{namesOf(ids, got.Lost), namesOf(ids, got.Locked), s.leasedFor(ids, "30 minutes")}); diff != "" {
			t.Errorf("lost, locked and renewed (-want +got):\n%s", diff)
		}
	}
	renew([]string{"locked"}, "free")
	unlock()
	renew(nil, "free", "locked")
}

// A lease is kept while something is due, and while its row is locked, because deliveries may just be made then.
func TestReleaseIdleLeases(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	owner, lease := s.Account(), newLease()
	ids := s.leased(owner, lease, "idle", "later", "due", "disabled and due", "locked", "taken and due")
	for _, name := range []string{"later", "due", "disabled and due", "taken and due"} {
		if _, err := s.Store.Webhooks.TestWebhook(t.Context(), access.OfOperator, owner, ids[name], feed.TypeWebhookTest); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET lease_holder = gen_random_uuid() WHERE id = $1", ids["taken and due"])
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET enabled = false, disabled_reason = 'owner' WHERE id = $1", ids["disabled and due"])
	pgtest.Exec(t, s.Store, "UPDATE deliveries SET next_attempt_at = now() + interval '1 minute' WHERE webhook_id = $1", ids["later"])
	unlock := s.Lock("SELECT FROM webhooks WHERE id = $1 FOR UPDATE", ids["locked"])
	release := func(kept ...string) {
		t.Helper()
		got, err := s.Store.Webhooks.ReleaseIdleLeases(t.Context(), lease, slices.Collect(maps.Values(ids)))
		if err != nil {
			t.Fatal(err)
		}
		want := [][]string{kept, append(slices.Clone(kept), "taken and due")}
		if diff := cmp.Diff(want, [][]string{namesOf(ids, got), s.leasedFor(ids, "0")}); diff != "" {
			t.Errorf("kept and leased (-want +got):\n%s", diff)
		}
	}
	release("due", "locked")
	unlock()
	release("due")
}

// Every account gets a lease before another gets its second, failing endpoints apart from the others.
func TestLeaseDue_Fair(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	hog, small := s.Account(), s.Account()
	for range 6 {
		s.Endpoint(hog, "https://example.com/")
	}
	var hogFailing []uuid.UUID
	for range 3 {
		e, _ := s.Endpoint(hog, "https://example.com/")
		hogFailing = append(hogFailing, e.ID)
		pgtest.Exec(t, s.Store, "UPDATE webhooks SET failing_since = now() - interval '1 day', last_failed_at = now() - $2::int * interval '1 hour' WHERE id = $1",
			e.ID, len(hogFailing))
	}
	s.Endpoint(small, "https://example.com/")
	s.Enqueue(1, hog)
	pgtest.Exec(t, s.Store, "UPDATE deliveries SET next_attempt_at = now() - interval '3 hours'")
	s.Enqueue(1, small)
	lease := newLease()
	for round, c := range []struct {
		room webhooks.LeaseRoom
		want map[string]int
	}{
		{webhooks.LeaseRoom{Free: 2}, map[string]int{"hog": 1, "small": 1, "hog failing": 1}},
		{webhooks.LeaseRoom{Free: 50}, map[string]int{}},                                      // reserved for others
		{webhooks.LeaseRoom{Free: 50, Shared: 8}, map[string]int{"hog": 1, "hog failing": 1}}, // a quarter
		{webhooks.LeaseRoom{Free: 3, Shared: 40}, map[string]int{"hog": 3, "hog failing": 1}},
	} {
		leased, err := s.Store.Webhooks.LeaseDue(t.Context(), lease, c.room, c.room)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, one := range leased {
			switch {
			case one.AccountID == small.AccountID:
				got["small"]++
			case one.Failing:
				got["hog failing"]++
				if oldest := hogFailing[len(hogFailing)-1]; round == 0 && one.ID != oldest {
					t.Errorf("%s is attempted before %s, which has waited longer", one.ID, oldest)
				}
			default:
				got["hog"]++
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
	}
}

// Only what can be sent is loaded: the limit of a claim bounds it, and what is in flight is left out.
func TestDueDeliveries_Claims(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	owner := s.Account()
	e, _ := s.Endpoint(owner, "https://example.com/")
	s.Enqueue(5, owner)
	lease := newLease()
	if leased, err := s.Store.Webhooks.LeaseDue(t.Context(), lease, webhooks.LeaseRoom{Free: 1}, webhooks.LeaseRoom{}); err != nil || len(leased) != 1 {
		t.Fatalf("%+v, %v", leased, err)
	}
	var sent []feed.ID
	for _, want := range []int{2, 2, 1, 0} {
		due, err := s.Store.Webhooks.DueDeliveries(t.Context(), lease, []webhooks.Claim{{WebhookID: e.ID, Limit: 2, InFlight: sent}})
		if err != nil || len(due[e.ID].Deliveries) != want {
			t.Fatalf("%+v, %v; want %d", due[e.ID].Deliveries, err, want)
		}
		for _, d := range due[e.ID].Deliveries {
			if slices.Contains(sent, d.EventID) {
				t.Errorf("%s is loaded twice", d.EventID)
			}
			sent = append(sent, d.EventID)
		}
	}
}
