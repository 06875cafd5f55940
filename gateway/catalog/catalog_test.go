package catalog_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/gateway/catalog"
	"intents.internal/gateway/control"
	"intents.internal/gateway/coretest"
)

// startCatalog is a catalog of a core that answers as said.
func startCatalog(t *testing.T, answer http.HandlerFunc) *catalog.Catalog {
	t.Helper()
	core := httptest.NewServer(answer)
	t.Cleanup(core.Close)
	at, err := url.Parse(core.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(control.New(coretest.Unprobed(t, coretest.Options(at))))
	t.Cleanup(c.Close)
	return c
}

func TestCatalog_Unshareable(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"no entity tag": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[]") },
		"a cookie": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Set-Cookie", "a=1")
		},
		"another status": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.WriteHeader(http.StatusNonAuthoritativeInfo)
		},
		"an error":                 func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"304 without a first copy": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCatalog(t, answer)
			if got, waited := c.Lookup([]byte("/v2/tokens"), nil, time.Now()); got != nil || !waited {
				t.Errorf("%+v, waited: %t", got, waited)
			}
			if got, waited := c.Lookup([]byte("/v2/tokens"), nil, time.Now()); got != nil || waited {
				t.Errorf("again: %+v, waited: %t", got, waited)
			}
		})
	}
}

// A copy that takes long to come is had all the same, and is revalidated before it is served.
func TestCatalog_DistantCore(t *testing.T) {
	t.Parallel()
	var revalidated atomic.Int64
	release := make(chan struct{})
	c := startCatalog(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			revalidated.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		<-release
		fmt.Fprint(w, "[]")
	})
	if got, _ := c.Lookup([]byte("/v2/tokens"), nil, time.Now()); got != nil {
		t.Errorf("an answer that core has not given: %+v", got)
	}
	close(release)
	deadline := time.Now().Add(20 * time.Second)
	for {
		if got, _ := c.Lookup([]byte("/v2/tokens"), nil, time.Now()); got != nil && string(got.Body) == "[]" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the copy never came")
		}
	}
	if revalidated.Load() == 0 {
		t.Error("the copy was not revalidated")
	}
}

// A request with a copy that is young enough starts its revalidation and does not wait for it, also where core hangs.
func TestCatalog_RefreshInBackground(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 8), make(chan struct{})
	c := startCatalog(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		if r.Header.Get("If-None-Match") != "" {
			<-release
		}
		w.Header().Set("ETag", `"1"`)
		fmt.Fprint(w, "[]")
	})
	defer close(release)
	start := time.Now()
	first, _ := c.Lookup([]byte("/v2/tokens"), nil, start)
	<-asked
	for range 3 {
		for _, age := range []time.Duration{249 * time.Millisecond, 250 * time.Millisecond, 399 * time.Millisecond} {
			if got, waited := c.Lookup([]byte("/v2/tokens"), nil, start.Add(age)); got == nil || got != first || waited {
				t.Errorf("after %s: %+v, waited: %t", age, got, waited)
			}
		}
	}
	<-asked
	if got, waited := c.Lookup([]byte("/v2/tokens"), nil, start.Add(400*time.Millisecond)); got != nil || !waited {
		t.Errorf("after 400ms: %+v, waited: %t", got, waited)
	}
	if len(asked) > 0 {
		t.Errorf("core was asked %d times more", len(asked))
	}
}
