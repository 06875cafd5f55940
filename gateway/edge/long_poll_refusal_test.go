package edge_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/edge"
	"intents.internal/gateway/polls"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// tooManyPolls is the refusal of a poll.
func tooManyPolls(message string) response {
	return refusal(429, `{"code":"TOO_MANY_POLLS","message":"`+message+`"}`, "Retry-After", "1", "Ratelimit", fresh[1], "Ratelimit-Policy", fresh[3])
}

func TestLongPoll_Bounds(t *testing.T) {
	t.Parallel()
	r := startReader(t)
	ofKey := tooManyPolls("This key has 2 requests for events that wait, which is as many as it may have. Try again when one has been answered.")
	ofAccount := tooManyPolls("Your account has 8 requests for events that wait, which is as many as it may have. Try again when one has been answered.")
	var parked []*clientConn
	for range polls.MaxPerAccount / polls.MaxPerKey {
		key := newReader(r.core, r.gateway, r.account)
		for range polls.MaxPerKey {
			parked = append(parked, key.park(t, "wait=25"))
		}
		mustRead(t, key.ask(t, "wait=25"), ofKey)
		mustRead(t, key.ask(t, "wait=0"), page(0)) // which waits for nothing
	}
	mustRead(t, r.ask(t, "wait=25"), ofAccount)
	other := newReader(r.core, r.gateway, uuid.NewString()).park(t, "wait=25")
	if got := r.gateway.value(t, "intents_gateway_requests_total too_many_polls /v2/events"); got != 5 {
		t.Errorf("%v refusals", got)
	}
	_ = parked[0].Close()
	asynctest.Eventually(t, "its place is free", func() bool { return r.polls(t) == polls.MaxPerAccount })
	r.park(t, "wait=25")
	r.gateway.Edge.AnnounceDrain()
	mustRead(t, other, last(page(0)))
}

func TestLongPoll_TotalBound(t *testing.T) {
	t.Parallel()
	r := startReader(t, func(s *settings) { s.MaxPolls = 1 })
	r.park(t, "wait=25")
	other := newReader(r.core, r.gateway, uuid.NewString())
	mustRead(t, other.ask(t, "wait=25"),
		tooManyPolls("Too many requests of all accounts together wait for events. Try again shortly, or ask without wait."))
}

// Whatever ends a poll, its place is free after.
func TestLongPoll_Released(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		public http.HandlerFunc
		edge   func(*edge.Edge)
		status int
	}{
		"core breaks off":   {public: hangUp, status: 503},
		"core refuses":      {public: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, status: 410},
		"the handler fails": {edge: func(e *edge.Edge) { e.SetUpstream(nil) }, status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := coretest.Start(t, test.public)
			r := newReader(core, start(t, core, func(s *settings) { s.edge = test.edge }), uuid.NewString())
			for range 3 {
				if got := r.ask(t, "wait=25").read(t, "GET"); got.Status != test.status {
					t.Errorf("%+v", got)
				}
			}
			if got := r.polls(t); got != 0 {
				t.Errorf("%d polls are left", got)
			}
		})
	}
}

// What core says of the wait is believed only of an empty page with a cursor, and within the interface's bound.
func TestLongPoll_HostileCore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ wait, body string }{
		"no number":   {"soon", `{"events":[],"next":"c"}`},
		"negative":    {"-1", `{"events":[],"next":"c"}`},
		"zero":        {"0", `{"events":[],"next":"c"}`},
		"endless":     {"99999999999999999999", `{"events":[],"next":"c"}`},
		"no cursor":   {"25", `{"events":[]}`},
		"not JSON":    {"25", `{`},
		"no response": {"25", ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(wire.HeaderPollWait, test.wait)
				_, _ = w.Write([]byte(test.body))
			})
			r := newReader(core, start(t, core), uuid.NewString())
			got := r.ask(t, "wait=25").read(t, "GET")
			if got.Status != 200 || got.Body != test.body || got.Header.Get(wire.HeaderPollWait) != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestLongPoll_CoreDownWhenWoken(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	core := coretest.Start(t, nil)
	core.Public = func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			hangUp(w, r)
		}
		core.Events.ServeHTTP(w, r)
	}
	r := newReader(core, start(t, core), uuid.NewString())
	c := r.park(t, "wait=25")
	down.Store(true)
	r.add("a")
	want := refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"The service broke off while it answered. Try again shortly."}`,
		"Retry-After", "1", "Ratelimit", fresh[1], "Ratelimit-Policy", fresh[3])
	mustRead(t, c, want)
}

// Many polls that are woken at once all get their events, over fewer connections to core than there are polls.
func TestLongPoll_AllWoken(t *testing.T) {
	t.Parallel()
	r := startReader(t, func(s *settings) { s.CoreMaxConns = 40 })
	const accounts, together = 80, 20
	var parked []*clientConn
	for len(parked) < accounts { // soon, since the first waits 25 s
		answered := r.answers(t)
		for range together {
			key := apikey.New(network.Test)
			as := r.core.Put(key, wire.VerifiedKey{})
			parked = append(parked, reader{r.core, r.gateway, as.AccountID, key}.ask(t, "after=now&wait=25"))
		}
		asynctest.Eventually(t, "they wait", func() bool { return r.polls(t) == len(parked) && r.answers(t) >= answered+together })
	}
	gaps := r.gateway.value(t, "intents_gateway_wakeup_gaps_total")
	r.core.Events.Forget()
	asynctest.Eventually(t, "each has asked again", func() bool {
		return r.gateway.value(t, "intents_gateway_wakeup_gaps_total") > gaps && r.core.Events.Asked.Load() >= 2*accounts
	})
	r.gateway.Edge.AnnounceDrain()
	for _, c := range parked {
		if got := c.read(t, "GET"); got.Status != 200 {
			t.Fatalf("%+v", got)
		}
	}
}
