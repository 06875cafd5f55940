package api_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
)

const noEvent = "The feed of this key's environment has no such event. Events are kept for a while, and webhook.test is not in the feed."

// An event is what the feed has, also before it has its place there, and of no other key than one of its account and environment.
func TestGetEvent(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	ann := keyed(owner, "test")
	_, location, _ := s.create(t, swapBody, ann...)
	events, _ := s.call(t, "GET", location+"/events", "", ann...).Body.(map[string]any)["events"].([]any)
	created := want(t, 200, `{}`)
	created.Body = events[0]
	id, _ := events[0].(map[string]any)["id"].(string)
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM feed`); n != 0 {
		t.Fatalf("%d events have their position already", n)
	}
	same(t, "a new event", created, s.call(t, "GET", "/v2/events/"+id, "", ann...))
	s.call(t, "POST", location+"/cancel", "", ann...)
	same(t, "the intent has moved on", created, s.example(t, "an event", "GET", "/v2/events/"+id, "", ann...))

	missing := refused(t, 404, "EVENT_NOT_FOUND", noEvent)
	for name, key := range map[string][]string{"another account": keyed(uuid.New(), "test"), "the other environment": keyed(owner, "live")} {
		same(t, name, missing, s.call(t, "GET", "/v2/events/"+id, "", key...))
	}
	for _, other := range []string{"evt_" + uuid.NewString(), uuid.NewString(), "evt_1", "EVT_" + id[4:]} {
		same(t, other, missing, s.call(t, "GET", "/v2/events/"+other, "", ann...))
	}
	same(t, "query", invalid(t, "limit", "is not a known parameter"), s.call(t, "GET", "/v2/events/"+id+"?limit=1", "", ann...))
	pgtest.Exec(t, s.store, `DELETE FROM feed`)
	same(t, "no longer kept", missing, s.call(t, "GET", "/v2/events/"+id, "", ann...))
}
