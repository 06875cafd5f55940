package command_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

// Operators are told what core does without, and that the expiry lag cannot be read.
func TestServe_Degraded(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	pgtest.Exec(t, pgtest.Open(t, database), "ALTER TABLE transfers RENAME deadline TO renamed")
	p := serve(t, database, "CORE_REDIS_URL=redis://127.0.0.1:1/0") // nothing listens there
	ask := func(path string) (status int, text string) {
		t.Helper()
		response, err := http.Get("http://" + p.ops + path) //nolint:noctx // go test bounds it
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if status, text := ask("/readyz"); status != http.StatusOK || !strings.HasPrefix(text, `{"status":"ok","degraded":{"redis":"`) {
		t.Errorf("ready without Redis: %d %s", status, text)
	}
	asynctest.Eventually(t, "the expiry lag was asked for", func() bool {
		_, text := ask("/metrics")
		return strings.Contains(text, "\nintents_core_expiry_lag_failures_total 1\n")
	})
	_, text := ask("/metrics")
	for _, line := range []string{
		`intents_build_info{go_version="go1.`, `intents_check_passing{check="postgres",optional="false"} 1`,
		`intents_check_passing{check="redis",optional="true"} 0`, `intents_core_pool_connections_limit{pool="redis"} 4`,
		`intents_core_pool_connections_limit{pool="postgres"} 16`, `intents_core_defects_total 0`, `intents_core_writes_waiting_limit 4096`, `intents_core_passwords_waiting 0`,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("/metrics has no line %s", line)
		}
	}
}
