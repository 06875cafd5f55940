package api_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

const noEvent = "The feed of this key's environment has no such event. Events are kept for a while, and webhook.test is not in the feed."

// An event is what the feed has, also before it has its place there, and of no other key than one of its account and environment.
func TestGetEvent(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	ann := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, webtest.SwapBody, ann...)
	events, _ := s.Call(t, "GET", location+"/events", "", ann...).Body.(map[string]any)["events"].([]any)
	created := webtest.Want(t, 200, `{}`)
	created.Body = events[0]
	id, _ := events[0].(map[string]any)["id"].(string)
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM feed`); n != 0 {
		t.Fatalf("%d events have their position already", n)
	}
	webtest.Same(t, "a new event", created, s.Call(t, "GET", "/v2/events/"+id, "", ann...))
	s.Call(t, "POST", location+"/cancel", "", ann...)
	webtest.Same(t, "the intent has moved on", created, s.Example(t, "an event", "GET", "/v2/events/"+id, "", ann...))

	missing := webtest.Refused(t, 404, "EVENT_NOT_FOUND", noEvent)
	for name, key := range map[string][]string{"another account": webtest.Keyed(uuid.New(), "test"), "the other environment": webtest.Keyed(owner, "live")} {
		webtest.Same(t, name, missing, s.Call(t, "GET", "/v2/events/"+id, "", key...))
	}
	for _, other := range []string{"evt_" + uuid.NewString(), uuid.NewString(), "evt_1", "EVT_" + id[4:]} {
		webtest.Same(t, other, missing, s.Call(t, "GET", "/v2/events/"+other, "", ann...))
	}
	webtest.Same(t, "query", webtest.Invalid(t, "limit", "is not a known parameter"), s.Call(t, "GET", "/v2/events/"+id+"?limit=1", "", ann...))
	pgtest.Exec(t, s.Store, `DELETE FROM feed`)
	webtest.Same(t, "no longer kept", missing, s.Call(t, "GET", "/v2/events/"+id, "", ann...))
}
