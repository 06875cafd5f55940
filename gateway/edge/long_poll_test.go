package edge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// reader is an account that reads its events, with one key.
type reader struct {
	core    *coretest.Core
	gateway *gateway
	account string
	key     apikey.Key
}

// startReader runs a gateway before a core with a feed, and makes an account.
func startReader(t *testing.T, change ...func(*settings)) reader {
	t.Helper()
	core := coretest.Start(t, nil)
	core.Public = core.Events.ServeHTTP
	return newReader(core, start(t, core, change...), uuid.NewString())
}

func newReader(core *coretest.Core, g *gateway, account string) reader {
	r := reader{core, g, account, apikey.New(network.Test)}
	core.Put(r.key, wire.VerifiedKey{AccountID: account})
	return r
}

// ask sends a request for events on a connection of its own.
func (r reader) ask(t *testing.T, query string) *clientConn {
	t.Helper()
	c := r.gateway.dial(t)
	t.Cleanup(func() { _ = c.Close() })
	c.write(t, request("GET", "/v2/events?"+query, apiKey(r.key), ""))
	return c
}

// park is ask, and waits until the gateway has so many polls, each with an answer of core.
func (r reader) park(t *testing.T, query string) *clientConn {
	t.Helper()
	polls, answered := r.polls(t), r.answers(t)
	c := r.ask(t, query)
	asynctest.Eventually(t, "it waits", func() bool { return r.polls(t) == polls+1 && r.answers(t) > answered })
	return c
}

func (r reader) add(kind string) { r.core.Events.Add(r.account, network.Test, kind) }

func (r reader) polls(t *testing.T) int {
	t.Helper()
	return int(r.gateway.value(t, "intents_gateway_long_polls"))
}

// answers is how many answers of core the gateway has.
func (r reader) answers(t *testing.T) int {
	t.Helper()
	return int(r.gateway.value(t, "intents_gateway_stage_duration_seconds core count"))
}

// page is the whole answer with these events.
func page(next int, events ...string) response {
	body, _ := json.Marshal(coretest.EventPage{Events: append([]string{}, events...), Next: fmt.Sprint("c", next)})
	return unkept(response{Status: 200, Body: string(body) + "\n", Header: http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {fmt.Sprint(len(body) + 1)}, "Ratelimit": {fresh[1]}, "Ratelimit-Policy": {fresh[3]},
	}})
}

var rateLimit = regexp.MustCompile(`^"default";r=[0-9]+;t=[0-9]+, "account";r=[0-9]+;t=[0-9]+$`)

// mustRead compares the whole answer but for the RateLimit field, of which it must have one.
func mustRead(t *testing.T, c *clientConn, want response) {
	t.Helper()
	got := c.read(t, "GET")
	if rateLimit.MatchString(got.Header.Get("Ratelimit")) {
		got.Header["Ratelimit"] = []string{fresh[1]}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLongPoll_AtOnce(t *testing.T) {
	t.Parallel()
	r := startReader(t)
	r.add("a")
	mustRead(t, r.ask(t, "wait=25"), page(1, "a"))
	for _, query := range []string{"after=c1", "after=c1&wait=0", "after=now&wait=00"} {
		mustRead(t, r.ask(t, query), page(1))
	}
	for _, query := range []string{"wait=26", "wait=x", "wait=1&wait=1", "after=x&wait=1"} {
		if got := r.ask(t, query).read(t, "GET"); got.Status != 400 {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if got := r.polls(t); got != 0 {
		t.Errorf("%d polls are left", got)
	}
}

func TestLongPoll_WakeUp(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"wait=25", "after=now&wait=25", "wait=25&after=c0&limit=10"} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			r := startReader(t)
			c := r.park(t, query)
			began := time.Now()
			r.add("a")
			mustRead(t, c, page(1, "a"))
			t.Logf("answered after %s", time.Since(began))
			// The connection goes on.
			c.write(t, request("GET", "/v2/events?after=c1", apiKey(r.key), ""))
			mustRead(t, c, page(1))
		})
	}
}

// An event that comes after core has read its events, and before the gateway has core's answer, wakes the poll.
func TestLongPoll_EventDuringRequest(t *testing.T) {
	t.Parallel()
	r := startReader(t)
	var added atomic.Bool
	r.core.Events.BeforeAnswer = func() {
		if added.CompareAndSwap(false, true) {
			before := r.core.Events.WakeUps.Load()
			r.add("a")
			asynctest.Eventually(t, "the gateway knows", func() bool { return r.core.Events.WakeUps.Load() >= before+2 })
		}
	}
	mustRead(t, r.ask(t, "after=now&wait=25"), page(1, "a"))
}

func TestLongPoll_Timeout(t *testing.T) {
	t.Parallel()
	// The other timeouts are no matter of the wait.
	r := startReader(t, func(s *settings) {
		s.CoreTimeout = 500 * time.Millisecond
		s.ReadTimeout, s.WriteTimeout, s.StreamTimeout, s.StreamRate = 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond, 1<<20
	})
	r.add("a")
	began := time.Now()
	c := r.ask(t, "types=b&wait=1")
	next := request("GET", "/v2/events", apiKey(r.key), "")
	c.write(t, next) // which is behind the one that waits
	mustRead(t, c, page(1))
	within(t, "an empty page", time.Since(began), time.Second)
	mustRead(t, c, page(1, "a"))
	c.write(t, next)
	mustRead(t, c, page(1, "a"))
	if took := r.gateway.value(t, "intents_gateway_request_duration_seconds /v2/events sum"); took > .9 {
		t.Errorf("the time of the wait counts: %v s", took)
	}
	asynctest.Eventually(t, "the log tells of the wait", func() bool { return strings.Count(r.gateway.log.String(), `"parked_ms":`) == 1 })
}

func TestLongPoll_Disconnect(t *testing.T) {
	t.Parallel()
	r := startReader(t)
	_ = r.park(t, "wait=25").Close()
	asynctest.Eventually(t, "it has left", func() bool { return r.polls(t) == 0 })
	asynctest.Eventually(t, "it is counted as what it is", func() bool {
		return r.gateway.value(t, "intents_gateway_requests_total client_gone /v2/events") == 1
	})
}

func TestLongPoll_Drain(t *testing.T) {
	t.Parallel()
	r := startReader(t)
	c := r.park(t, "after=now&wait=25")
	r.gateway.Edge.AnnounceDrain()
	mustRead(t, c, last(page(0)))
	mustRead(t, r.ask(t, "after=now&wait=25"), last(page(0)))
}

// The connections to core are free while requests wait, and so are the account's lists.
func TestLongPoll_NoCoreConnection(t *testing.T) {
	t.Parallel()
	r := startReader(t, func(s *settings) { s.CoreMaxConns = 1 }) // one list of an account at once
	parked := []*clientConn{r.park(t, "after=now&wait=25"), r.park(t, "after=now&wait=25")}
	mustRead(t, r.ask(t, "after=now"), page(0))
	r.gateway.Edge.AnnounceDrain()
	for _, c := range parked {
		mustRead(t, c, last(page(0)))
	}
}

// A page that leaves out all the account is busy with neither ends the wait nor makes core work without end.
func TestLongPoll_FilteredEvents(t *testing.T) {
	t.Parallel()
	r := startReader(t)
	c := r.park(t, "types=b&wait=25")
	asked, began := r.core.Events.Asked.Load(), time.Now()
	for range 200 {
		r.add("a")
		<-time.After(5 * time.Millisecond)
	}
	// One after 0, 50, 150 and 350 ms, and then one each 200 ms.
	if got, most := r.core.Events.Asked.Load()-asked, 4+int64(time.Since(began)/(200*time.Millisecond)); got > most {
		t.Errorf("core was asked %d times, at most %d would do", got, most)
	}
	r.add("b")
	mustRead(t, c, page(201, "b"))
}
