package walk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"intents.internal/deploy/walk"
	"intents.internal/pkg/client"
)

// limited is a server that answers the first request to each path 429, and the others with an intent. Paths are those that it was asked, in order.
func limited(t *testing.T) (url string, paths func() []string) {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		first := !slices.Contains(asked, r.URL.Path)
		asked = append(asked, r.URL.Path)
		if first {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"code":"RATE_LIMITED","message":"Wait."}`)
			return
		}
		fmt.Fprint(w, `{"id":"one"}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(asked) }
}

// A request that the client tries once, and one without the client, wait as long as they are told.
func TestUntilAllowed(t *testing.T) {
	t.Parallel()
	url, paths := limited(t)
	api, err := client.New(url, "sk_test_x")
	if err != nil {
		t.Fatal(err)
	}
	for name, request := range map[string]func() (time.Duration, error){
		"/v2/transfers/one/signature": func() (time.Duration, error) {
			_, err := api.Transfers.SubmitSignature(t.Context(), "one", "0x1")
			return walk.WaitOfError(err), err
		},
		"/v2/transfers/one/transaction": func() (time.Duration, error) {
			_, err := api.Transfers.Report(t.Context(), "one", "0x1")
			return walk.WaitOfError(err), err
		},
		"/v2/quotes": func() (time.Duration, error) {
			sent, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v2/quotes", http.NoBody)
			if err != nil {
				return 0, err
			}
			response, err := http.DefaultClient.Do(sent)
			if err != nil {
				return 0, err
			}
			defer response.Body.Close()
			return walk.WaitOf(response), nil
		},
	} {
		before := len(paths())
		var waited []time.Duration
		if err := walk.UntilAllowed(t.Context(), func(wait time.Duration) { waited = append(waited, wait) }, request); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if asked := paths()[before:]; !slices.Equal(asked, []string{name, name}) || !slices.Equal(waited, []time.Duration{time.Second}) {
			t.Errorf("%s: asked %v, waited %v", name, asked, waited)
		}
	}
}

// Another refusal is final, and a wait ends with its context.
func TestUntilAllowed_Ends(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	none := func(time.Duration) {}
	if err := walk.UntilAllowed(t.Context(), none, func() (time.Duration, error) { return 0, refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := walk.UntilAllowed(ctx, func(time.Duration) { cancel() }, func() (time.Duration, error) { return time.Hour, refused })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if wait := walk.WaitOfError(&client.Error{Status: http.StatusServiceUnavailable, RetryAfter: time.Second}); wait != 0 {
		t.Errorf("waits %s for a failure that is no limit", wait)
	}
}
