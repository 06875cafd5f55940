package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

func keyFile(t *testing.T, env network.Environment) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(apikey.New(env).Reveal()+"\n"+apikey.New(env).Reveal()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunDeployment_Counts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	keys, idempotent := map[string]int{}, map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys[r.Header.Get("X-Api-Key")]++
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.Method == http.MethodPost:
			idempotent[r.Header.Get("Idempotency-Key")] = true
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "{}")
		case r.URL.Path == "/v2/tokens":
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	d, err := parseDeployment([]string{
		"-url", server.URL + "/", "-keys", keyFile(t, network.Test), "-mix", "create=2,tokens=1,list=1", "-rate", "40", "-time", "1s",
	})
	if err != nil {
		t.Fatal(err)
	}
	var progress, table bytes.Buffer
	results, err := d.measure(t.Context(), &progress)
	if err != nil {
		t.Fatal(err)
	}
	results.print(&table)
	for name, want := range map[string]map[int]int{"create": {201: 20}, "tokens": {429: 10}, "list": {503: 10}} {
		for status, count := range want {
			if got := results[name].statuses[status]; got != count || len(results[name].times) != count {
				t.Errorf("%s: %d answers %d of %d, want %d", name, got, status, len(results[name].times), count)
			}
		}
	}
	if results.failed() != 10 || len(keys) != 2 || len(idempotent) != 20 {
		t.Errorf("%d failed, %d keys, %d idempotency keys", results.failed(), len(keys), len(idempotent))
	}
	if !strings.Contains(progress.String(), "40 of 40 requests answered") || !strings.Contains(table.String(), "429: 10") {
		t.Errorf("progress:\n%s\ntable:\n%s", &progress, &table)
	}
}

// A time counts from when its request was due: one connection that waits for a slow answer makes the others late.
func TestRunDeployment_Stall(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { <-time.After(stall) })
		_, _ = io.WriteString(w, "[]")
	}))
	t.Cleanup(server.Close)
	d, err := parseDeployment([]string{
		"-url", server.URL, "-keys", keyFile(t, network.Live), "-mix", "list=1", "-rate", "100", "-time", "1s", "-conns", "1",
	})
	if err != nil {
		t.Fatal(err)
	}
	results, err := d.measure(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for _, took := range results["list"].times {
		if took > stall/3 {
			late++
		}
	}
	if late < 15 {
		t.Errorf("%d requests were late, want those of %s", late, stall*2/3)
	}
}

func TestRunDeployment_Flags(t *testing.T) {
	t.Parallel()
	good, live := keyFile(t, network.Test), keyFile(t, network.Live)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no URL":        {[]string{"-keys", good}, "-url"},
		"other scheme":  {[]string{"-url", "ftp://x", "-keys", good}, "-url"},
		"no keys":       {[]string{"-url", "http://x"}, "-keys"},
		"no such file":  {[]string{"-url", "http://x", "-keys", good + "x"}, "no such file"},
		"live key":      {[]string{"-url", "http://x", "-keys", live}, "leave them out"},
		"unknown share": {[]string{"-url", "http://x", "-keys", good, "-mix", "swap=1"}, "-mix"},
		"no share":      {[]string{"-url", "http://x", "-keys", good, "-mix", "list=0"}, "nothing to do"},
		"no rate":       {[]string{"-url", "http://x", "-keys", good, "-rate", "0"}, "-rate"},
	} {
		if _, err := parseDeployment(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}
