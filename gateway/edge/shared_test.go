package edge_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// etagOf is the entity tag of a document of the stand-in's.
func etagOf(t *testing.T, g *gateway, raw string) string {
	t.Helper()
	etag := g.send(t, raw).Header.Get("Etag")
	if !strings.HasPrefix(etag, `W/"`) {
		t.Fatalf("entity tag %q", etag)
	}
	return etag
}

// Answers that every client gets alike are core's, header for header, and no client's request reaches core for them.
func TestShared(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	key := apiKey(core.AddKey(network.Test))
	for target, test := range map[string]struct{ core, headers string }{
		"/openapi.json":                {"/openapi.json", ""},
		"/v2/openapi.json":             {"/openapi.json", ""},
		"/openapi.json?any=query":      {"/openapi.json", ""},
		"/docs":                        {"/docs", ""},
		"/docs/style.css":              {"/docs/style.css", ""},
		"/docs/agents.md":              {"/docs/agents.md", ""},
		"/docs/reference/transfers?a":  {"/docs/reference/transfers", ""},
		"/llms.txt":                    {"/llms.txt", ""},
		"/v2/tokens":                   {"/v2/tokens", key},
		"/v2/tokens?chain-id=eip155:1": {"/v2/tokens?chain-id=eip155:1", key},
		"/v2/chains":                   {"/v2/chains", key},
	} {
		body := `[{"chainId":"eip155:1","environment":"live","of":"` + test.core + `"}]`
		core.Documents.Put(test.core, body)
		asynctest.Eventually(t, "the copy is of this test", func() bool { return g.send(t, request("GET", target, test.headers, "")).Body == body })
		etag := etagOf(t, g, request("GET", target, test.headers, ""))
		shared := http.Header{"Etag": {etag}, "Cache-Control": {"private, no-cache"}, "Vary": {"Accept-Encoding"}}
		identity := shared.Clone()
		identity.Set("Content-Type", "application/json")
		identity.Set("Content-Length", fmt.Sprint(len(body)))
		gzipped := identity.Clone()
		gzipped.Set("Content-Encoding", "gzip")
		gzipped.Set("Content-Length", fmt.Sprint(len(coretest.Gzip(body))))
		for headers, want := range map[string]response{
			"":                                   {200, identity, body},
			"Accept-Encoding: gzip, deflate\r\n": {200, gzipped, string(coretest.Gzip(body))},
			"Accept-Encoding: br\r\n":            {200, identity, body},
			"If-None-Match: " + etag + "\r\n":    {304, shared, ""},
			"If-None-Match: \"a\", " + etag[2:] + "\r\n":        {304, shared, ""},
			"If-None-Match: *\r\nAccept-Encoding: gzip\r\n":     {304, shared, ""},
			"If-None-Match: \"a\"\r\nAccept-Encoding: gzip\r\n": {200, gzipped, string(coretest.Gzip(body))},
		} {
			got := g.send(t, request("GET", target, test.headers+headers, ""))
			if _, limited := got.Header["Ratelimit"]; limited != (test.headers != "") {
				t.Errorf("%s: RateLimit %v", target, got.Header)
			}
			got.Header.Del("Ratelimit")
			got.Header.Del("Ratelimit-Policy")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s with %q (-want +got):\n%s", target, headers, diff)
			}
		}
		if test.headers == "" {
			if diff := cmp.Diff(response{200, identity, ""}, g.send(t, request("HEAD", target, "", ""))); diff != "" {
				t.Errorf("HEAD %s (-want +got):\n%s", target, diff)
			}
		}
	}
	if heard := core.Requests(); len(heard) > 0 {
		t.Errorf("core received %v", heard)
	}
}

// What the gateway has no copy of is core's to answer, and to refuse.
func TestShared_Forwarded(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "core's own")
	})
	g := start(t, core)
	key := apiKey(core.AddKey(network.Test))
	core.Documents.Put("/v2/tokens", "[]")
	core.Documents.Put("/v2/chains", "[]")
	core.Documents.Put("/openapi.json", "{}")
	for _, target := range []string{
		"/v2/tokens?", "/v2/tokens?chain-id=eip155:404", "/v2/tokens?chain-id=", "/v2/tokens?chain-id=eip155%3A1",
		"/v2/tokens?chain-id=eip155:1&a=b", "/v2/tokens?chain-id=eip155:1&chain-id=eip155:1", "/v2/chains?a=b",
		"/v2/tokens?search=usdc", "/v2/tokens?chain-id=eip155:1&search=usdc",
	} {
		if got := g.send(t, request("GET", target, key, "")); got.Status != 500 || got.Body != "core's own" {
			t.Errorf("%s: %+v", target, got)
		}
	}
	core.Documents.Down.Store(true)
	for target, headers := range map[string]string{"/v2/tokens": key, "/v2/chains": key, "/openapi.json": ""} {
		if got := g.send(t, request("GET", target, headers, "")); got.Status != 500 || got.Body != "core's own" {
			t.Errorf("%s while core has no copy to give: %+v", target, got)
		}
	}
	if got := len(core.Requests()); got != 12 {
		t.Errorf("core received %d requests", got)
	}
}

// A change is seen within what the gateway adds to core's own half second, and core is asked once for all who wait.
func TestShared_Fresh(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	core.Documents.BeforeAnswer = func() { <-time.After(20 * time.Millisecond) } // so that all come meanwhile
	g := start(t, core)
	raw := request("GET", "/openapi.json", "", "")
	for version := range 4 {
		body := strings.Repeat(fmt.Sprint(version), 1000)
		core.Documents.Put("/openapi.json", body)
		changed := time.Now()
		asynctest.Eventually(t, "the change is seen", func() bool { return g.send(t, raw).Body == body })
		if took := time.Since(changed); took > 250*time.Millisecond+slowAllowance {
			t.Errorf("the change was seen after %s", took)
		} else {
			t.Logf("the change was seen after %s", took.Round(time.Millisecond))
		}
		asked, sent := core.Documents.Asked.Load(), core.Documents.Sent.Load()
		began := time.Now()
		var clients sync.WaitGroup
		for range 50 {
			clients.Go(func() {
				for range 4 {
					if got := g.send(t, raw); got.Body != body {
						t.Errorf("%+v", got)
					}
				}
			})
		}
		clients.Wait()
		most := int64(time.Since(began)/(250*time.Millisecond)) + 1
		if got := core.Documents.Asked.Load() - asked; got > most {
			t.Errorf("core was asked %d times for 200 requests, want %d", got, most)
		}
		if got := core.Documents.Sent.Load() - sent; got != 0 {
			t.Errorf("core sent %d bodies that had not changed", got)
		}
	}
}

// A core that hangs costs the time of one look, not its whole timeout, before the request takes the usual way.
func TestShared_CoreHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	core := coretest.Start(t, nil)
	core.Documents.BeforeAnswer = func() { <-release }
	g := start(t, core)
	defer close(release)
	began := time.Now()
	if got := g.send(t, request("GET", "/v2/tokens", apiKey(core.AddKey(network.Test)), "")); got.Status != 200 || got.Body != "[]" {
		t.Errorf("%+v", got)
	}
	within(t, "the usual way", time.Since(began), 400*time.Millisecond)
}
