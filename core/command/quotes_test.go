package command_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
)

// A provider at a private address must be allowed.
func TestServe_QuotesAllow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "quotes.json")
	provider := `[{"name": "solver", "kind": "oif", "url": "http://127.0.0.1:9", "environment": "test", "deployment": "d", "headers": {"X-Key": "hunter2"}}]`
	if err := os.WriteFile(file, []byte(provider), 0o600); err != nil {
		t.Fatal(err)
	}
	url := pgtest.Database(t)
	got := core(t, "", append(on(url), "CORE_GATEWAY_SECRET="+gatewaySecret, "CORE_QUOTES_FILE="+file), "serve")
	want := "core: CORE_QUOTES_FILE names addresses that must not be called, and CORE_QUOTES_ALLOW does not allow them: solver: 127.0.0.1:9: " +
		"http:// is for addresses in the networks of CORE_QUOTES_ALLOW, because headers can be read on the way; use https://"
	if got.Code != 1 || !strings.HasPrefix(got.ErrOut, want) || strings.Contains(got.ErrOut, "hunter2") {
		t.Errorf("got %+v", got)
	}
	p := serve(t, url, "CORE_QUOTES_FILE="+file, "CORE_QUOTES_ALLOW=127.0.0.0/8,::1/128")
	response, err := http.Get("http://" + p.ops + "/metrics") //nolint:noctx // go test bounds it
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if metrics, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(metrics), `intents_core_quote_requests_total{environment="test",provider="solver"} 0`) {
		t.Errorf("the provider has no metrics: %v", err)
	}
}
