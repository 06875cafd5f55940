package edge_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// POSTs of 64 accounts that wait for core together are sent together, and stay apart: core hears of each with its own identity, and each client
// gets its own response, under its own request id and its own limit. A response that says nothing of caches may not be kept.
func TestBatch_Identities(t *testing.T) {
	t.Parallel()
	const clients = 64
	full := make(chan struct{})
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		<-full
		w.Header().Set("Location", "/of/"+r.Header.Get(wire.HeaderKeyID))
		if r.Header.Get("Idempotency-Key") == "own-1" {
			w.Header().Set("Cache-Control", "private")
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Header.Get(wire.HeaderAccountID), r.Header.Get(wire.HeaderKeyEnv), r.Header.Get(wire.HeaderRequestID), r.Header.Get("Idempotency-Key"))
	})
	g := start(t, core)
	asynctest.Eventually(t, "core is known to serve batches", g.Upstream.Cores().All()[0].Batches)

	var want, got [clients]response
	bodies := map[string]string{}
	var all sync.WaitGroup
	for n := range clients {
		key := core.AddKey(network.Test)
		limit := 50 + n
		known := core.Put(key, wire.VerifiedKey{Limit: wire.KeyLimit{Requests: limit, PeriodSeconds: 60}})
		id := fmt.Sprintf("request-%d", n)
		text := strings.Replace(transfer("eip155:11155111", "eip155:11155111"), `"1"`, fmt.Sprintf(`"%d"`, n+1), 1)
		bodies[id] = text
		want[n] = response{Status: http.StatusCreated, Header: http.Header{
			"Location": {"/of/" + known.KeyID}, "X-Request-Id": {id}, "Cache-Control": {"no-store"},
			"Ratelimit-Policy": {fmt.Sprintf(`"default";q=%d;w=60, "account";q=%d;w=60`, limit, 20*limit)},
		}, Body: fmt.Sprintf("%s test %s own-%d", known.AccountID, id, n)}
		if n == 1 {
			want[n].Header.Set("Cache-Control", "private")
		}
		all.Go(func() {
			got[n] = g.send(t, request("POST", "/v2/transfers", apiKey(key)+jsonType+"X-Request-Id: "+id+"\r\n"+fmt.Sprintf("Idempotency-Key: own-%d\r\n", n), text))
		})
	}
	asynctest.Eventually(t, "the permits are taken", func() bool { return len(core.Requests()) >= 3 })
	close(full)
	all.Wait()
	for n := range clients {
		for name := range want[n].Header {
			if diff := cmp.Diff(want[n].Header[name], got[n].Header[name]); diff != "" {
				t.Errorf("client %d, %s (-want +got):\n%s", n, name, diff)
			}
		}
		if got[n].Status != want[n].Status || got[n].Body != want[n].Body {
			t.Errorf("client %d got %d %q, want %q", n, got[n].Status, got[n].Body, want[n].Body)
		}
	}
	if core.Batches.Load() == 0 {
		t.Error("all were sent alone")
	}
	at := map[string]string{}
	for _, r := range core.Requests() {
		at[r.Header.Get(wire.HeaderRequestID)] = r.Body
	}
	if diff := cmp.Diff(bodies, at); diff != "" {
		t.Errorf("bodies at core by request id (-want +got):\n%s", diff)
	}
}
