package command_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

// Behind a transaction pooler core migrates past it, serves through it, and tells once of the time limits that it lacks.
func TestServe_PgBouncer(t *testing.T) {
	t.Parallel()
	direct := pgtest.Unmigrated(t)
	pooled := pgtest.Pooler(t, direct, "pool_mode = transaction", "default_pool_size = 4", pgtest.IgnoredParameters)
	refused := core(t, "", on(pooled), "migrate")
	if refused.Code != 1 || !strings.Contains(refused.ErrOut, "set CORE_MIGRATE_DATABASE_URL to Postgres's own address") {
		t.Errorf("migrate through the pooler: %+v", refused)
	}
	p := serve(t, pooled, "CORE_MIGRATE_DATABASE_URL="+direct, "CORE_MIGRATE_ON_START=true")
	out := p.out.String()
	if strings.Count(out, "time limits are not in force") != 1 || !strings.Contains(out, "statement_timeout is 0 ms, not 4000 ms") {
		t.Errorf("log:\n%s", out)
	}
	if again := core(t, "", append(on(pooled), "CORE_MIGRATE_DATABASE_URL="+direct), "migrate"); again.Out != "the database is up to date\n" {
		t.Errorf("migrate past the pooler: %+v", again)
	}
}

// Operators see whether lists are read from the replica, which core is ready without.
func TestServe_Replica(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	p := serve(t, servers.Primary.URL, "CORE_READ_DATABASE_URL="+servers.Replica.URL)
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
	passing := func(value string) bool {
		_, text := ask("/metrics")
		return strings.Contains(text, "\n"+`intents_check_passing{check="replica",optional="true"} `+value)
	}
	asynctest.Eventually(t, "the replica is in use", func() bool { return passing("1") })
	_, text := ask("/metrics")
	for _, line := range []string{
		`intents_core_list_batches_total{source="replica"} 0`, `intents_core_replica_fallbacks_total{reason="changed"} 0`, `intents_core_replica_lag_bytes `,
		`intents_core_replica_lag_seconds `, `intents_core_pool_connections_limit{pool="postgres_replica"} 16`,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("/metrics has no line %s", line)
		}
	}
	if err := servers.Replica.Stop(); err != nil {
		t.Fatal(err)
	}
	asynctest.Eventually(t, "the loss is told", func() bool { return passing("0") })
	if status, text := ask("/readyz"); status != http.StatusOK || !strings.Contains(text, `"degraded":{"replica":"`) {
		t.Errorf("ready without the replica: %d %s", status, text)
	}
}
