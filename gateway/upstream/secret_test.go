package upstream_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/wire"
)

// foreign rejects the shared secret, as core does before it does anything.
func foreign(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set(wire.HeaderCore, wire.CoreRefused)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprintf(w, `{"code":%q,"message":"Only gateways may call this address; call the gateway's."}`, wire.NotAGateway)
}

// A core with another secret has carried nothing out: whatever was sent there goes to the next core, and it gets no more.
func TestClient_SecretRejected(t *testing.T) {
	t.Parallel()
	for kind, r := range map[string]request{
		"read": read, "write": write, "repeated write": repeatedWrite, "list": list, "head": {method: fasthttp.MethodHead}, "session": {method: fasthttp.MethodPost, session: true},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			other, works := startCore(t, foreign), startCore(t, name("here"))
			c := newClient(t, settings{unprobed: true}, other.URL, works.URL)
			const requests = 20
			for range requests {
				response, err := c.do(r)
				if err != nil || response.StatusCode() != http.StatusOK || r.method != fasthttp.MethodHead && string(response.Body()) != "here" {
					t.Errorf("answered %d %s, %v", response.StatusCode(), response.Body(), err)
				}
			}
			if other.hits.Load() != 1 || works.hits.Load() != requests || c.set.All()[0].Up() {
				t.Errorf("%d of %d requests went to the core that rejects them; up: %t", other.hits.Load(), requests, c.set.All()[0].Up())
			}

			only := newClient(t, settings{unprobed: true}, other.URL, startCore(t, foreign).URL)
			if response, err := only.do(r); !errors.Is(err, upstream.ErrUnreachable) || len(response.Body()) != 0 {
				t.Errorf("with no core left: %v, %s", err, response.Body())
			}
		})
	}
}

// Another 401 is core's answer to a browser.
func TestClient_OtherUnauthorized(t *testing.T) {
	t.Parallel()
	const body = `{"code":"UNAUTHORIZED","message":"Sign in first."}`
	only := startCore(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, body)
	})
	c := newClient(t, settings{unprobed: true}, only.URL)
	if got := c.answer(request{method: fasthttp.MethodPost, session: true}); got != body || !c.set.All()[0].Up() {
		t.Errorf("answered %s; up: %t", got, c.set.All()[0].Up())
	}
}
