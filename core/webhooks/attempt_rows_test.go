package webhooks_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
)

// attempted leases all endpoints and returns the result of one attempt at each.
func (s fixture) attempted(attempts map[*webhooks.Endpoint]webhooks.Attempt) (records []webhooks.AttemptRecord, ordinal map[*webhooks.Endpoint]int) {
	s.Helper()
	lease := newLease()
	room := webhooks.LeaseRoom{Free: 100, Shared: 400}
	if _, err := s.Store.Webhooks.LeaseDue(s.Context(), lease, room, room); err != nil {
		s.Fatal(err)
	}
	ordinal = map[*webhooks.Endpoint]int{}
	for e, attempt := range attempts {
		due, err := s.Store.Webhooks.DueDeliveries(s.Context(), lease, []webhooks.Claim{{WebhookID: e.ID, Limit: 1}})
		if err != nil || len(due[e.ID].Deliveries) != 1 {
			s.Fatalf("%+v, %v", due, err)
		}
		attempt.EndedAt = s.Store.Now()
		ordinal[e] = len(records)
		records = append(records, webhooks.AttemptRecord{Endpoint: due[e.ID].Endpoint, Delivery: due[e.ID].Deliveries[0].Delivery, Attempt: attempt})
	}
	return records, ordinal
}

var (
	succeeded = webhooks.Attempt{Outcome: webhooks.Succeeded, ResponseStatus: 204}
	gone      = webhooks.Attempt{Outcome: webhooks.OtherStatus, ResponseStatus: http.StatusGone}
	timedOut  = webhooks.Attempt{Outcome: webhooks.TimedOut}
)

// A result is written with its effects on the endpoint or not at all, and one that cannot be written costs no other endpoint's.
func TestRecordAttempts_Atomic(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	owner, other := s.Account(), s.Account()
	broken, _ := s.Endpoint(owner, "https://example.com/")
	well, _ := s.Endpoint(other, "https://example.com/")
	s.Enqueue(1, owner, other)
	pgtest.Exec(t, s.Store, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`)
	pgtest.Exec(t, s.Store, `CREATE TRIGGER refuse BEFORE INSERT ON feed FOR EACH ROW EXECUTE FUNCTION refuse()`)
	records, ordinal := s.attempted(map[*webhooks.Endpoint]webhooks.Attempt{broken: gone, well: succeeded})
	recorded, err := s.Store.Webhooks.RecordAttempts(t.Context(), records, true)
	if err != nil || recorded.Err == nil || !cmp.Equal(recorded.Lost, []int{ordinal[broken]}) || recorded.Disabled != nil {
		t.Errorf("%+v, %v", recorded, err)
	}
	if d := s.Deliveries(well)[0]; d.Status != webhooks.Delivered {
		t.Errorf("the other endpoint's result is lost: %+v", d)
	}
	if d := s.Deliveries(broken)[0]; d.Attempts != 0 || !s.Read(broken).Enabled {
		t.Errorf("half a result is written: %+v, enabled %t", d, s.Read(broken).Enabled)
	}
	pgtest.Exec(t, s.Store, `DROP TRIGGER refuse ON feed`)
	recorded, err = s.Store.Webhooks.RecordAttempts(t.Context(), records, true)
	if err != nil || !cmp.Equal(recorded, webhooks.Recorded{Disabled: []webhooks.Reason{webhooks.DisabledGone}}) {
		t.Errorf("%+v, %v", recorded, err)
	}
	if d := s.Deliveries(broken)[0]; d.Attempts != 1 || s.Read(broken).DisabledReason != webhooks.DisabledGone {
		t.Errorf("%+v, %q", d, s.Read(broken).DisabledReason)
	}
}

// A result waits while its endpoint or its delivery is locked, and those of other endpoints do not. A failure at a URL that the
// endpoint no longer has leaves the delivery due.
func TestRecordAttempts_Locked(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	one, two, three, four := s.Account(), s.Account(), s.Account(), s.Account()
	locked, _ := s.Endpoint(one, "https://example.com/")
	lockedDelivery, _ := s.Endpoint(two, "https://example.com/")
	free, _ := s.Endpoint(three, "https://example.com/")
	moved, _ := s.Endpoint(four, "https://example.com/")
	s.Enqueue(1, one, two, three, four)
	records, ordinal := s.attempted(map[*webhooks.Endpoint]webhooks.Attempt{locked: timedOut, lockedDelivery: succeeded, free: timedOut, moved: timedOut})
	s.Change(moved, webhooks.Change{URL: new("https://example.com/moved")})
	unlock := s.Lock("SELECT FROM webhooks WHERE id = $1 FOR UPDATE", locked.ID)
	unlockDelivery := s.Lock("SELECT FROM deliveries WHERE webhook_id = $1 FOR UPDATE", lockedDelivery.ID)
	store := pgtest.OpenImpatient(t, s.URL)
	recorded, err := store.Webhooks.RecordAttempts(t.Context(), records, false)
	if err != nil || len(recorded.Busy) != 2 || recorded.Lost != nil {
		t.Errorf("%+v, %v", recorded, err)
	}
	if s.Read(free).Failures != 1 || s.Deliveries(free)[0].Attempts != 1 {
		t.Errorf("the result of the endpoint that is not locked is not recorded")
	}
	unlock()
	unlockDelivery()
	var later []webhooks.AttemptRecord
	for _, n := range recorded.Busy {
		later = append(later, records[n])
	}
	if recorded, err := store.Webhooks.RecordAttempts(t.Context(), later, false); err != nil || !cmp.Equal(recorded, webhooks.Recorded{}) {
		t.Errorf("%+v, %v", recorded, err)
	}
	if s.Read(locked).Failures != 1 || s.Deliveries(lockedDelivery)[0].Status != webhooks.Delivered {
		t.Error("the results of the endpoints that were locked are not recorded later")
	}
	if d := s.Deliveries(moved)[0]; d.Attempts != 0 || s.Read(moved).FailingSince != nil {
		t.Errorf("result %d counts for the new URL: %+v", ordinal[moved], d)
	}
}
