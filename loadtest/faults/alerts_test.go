package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// databaseAlerts are those of the group database of deploy/prometheus/rules.
var databaseAlerts = []string{
	"BackupOld", "ConnectionsNearLimit", "NoSynchronousStandby", "RedisEvicts", "RedisMemoryNearLimit", "ReplicaDegraded", "ReplicationSlotUnused",
}

// Each alert of what keeps the next failure from being survived fires on real servers, by the shipped rule, and none before its cause is
// there. Only the time that a cause must last is shortened.
func TestAlerts_Database(t *testing.T) {
	t.Parallel()
	db := startDatabase(t, embedded.PostgresConfig{Settings: []string{"max_connections=40"}})
	standby, err := db.server.StartReplica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = standby.Stop()
		}
	})
	db.execute(t, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	db.execute(t, `SELECT pg_reload_conf()`)
	limits := startRedis(t)
	core := startCores(t, db, 1, "CORE_READ_DATABASE_URL="+standby.URL, "CORE_REDIS_URL="+limits.url())[0]
	backups := startTextfiles(t)
	p := startPrometheus(t, core, backups)

	asynctest.Eventually(t, "the state of all servers is scraped", func() bool {
		return len(p.Series(`intents_core_postgres_synchronous_standbys == 1 and on () intents_check_passing{check="replica"} == 1`)) > 0
	})
	if fired := firing(p); len(fired) > 0 {
		t.Fatalf("while nothing is wrong: %q", fired)
	}

	backups.mark(t, time.Now().Add(-50*time.Hour))
	fillRedis(t, limits)
	db.execute(t, `SELECT pg_create_physical_replication_slot('left_behind', true)`)
	connectMany(t, db, 28)
	if err := standby.Stop(); err != nil {
		t.Fatal(err)
	}
	stopped = true
	var missing string
	t.Cleanup(func() { t.Log("alerts (-want +fired): " + missing) })
	asynctest.Eventually(t, "every alert fires", func() bool {
		missing = cmp.Diff(databaseAlerts, firing(p))
		return missing == ""
	})
}

// fillRedis gives Redis more than its memory.
func fillRedis(t *testing.T, limits *redisServer) {
	t.Helper()
	for setting, value := range map[string]string{"maxmemory": "8mb", "maxmemory-policy": "allkeys-lru"} {
		if err := limits.client.ConfigSet(t.Context(), setting, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 64 {
		if err := limits.client.Set(t.Context(), fmt.Sprint("filler", n), strings.Repeat("x", 1<<18), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// connectMany holds so many connections until the test ends.
func connectMany(t *testing.T, db *database, count int) {
	t.Helper()
	for range count {
		conn, err := pgx.Connect(t.Context(), db.url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
}

// textfiles serves the metrics in a directory, as node_exporter does.
type textfiles struct{ dir, address string }

func startTextfiles(t *testing.T) *textfiles {
	t.Helper()
	f := &textfiles{dir: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		files, _ := filepath.Glob(filepath.Join(f.dir, "*.prom"))
		for _, file := range files {
			text, _ := os.ReadFile(file)
			_, _ = w.Write(text)
		}
	}))
	t.Cleanup(server.Close)
	f.address = server.Listener.Addr().String()
	return f
}

// mark runs the step of deploy/BACKUP.md that marks a backup, as of this time.
func (f *textfiles) mark(t *testing.T, made time.Time) {
	t.Helper()
	page, err := os.ReadFile("../../deploy/BACKUP.md")
	if err != nil {
		t.Fatal(err)
	}
	step := regexp.MustCompile("(?s)```sh\n(echo \"intents_base_backup_timestamp_seconds .*?)```").FindSubmatch(page)
	if step == nil {
		t.Fatal("deploy/BACKUP.md marks no backup")
	}
	shell := exec.CommandContext(t.Context(), "bash", "-euc", fmt.Sprintf("date() { command date -d @%d \"$@\"; }\n%s", made.Unix(), step[1]))
	shell.Env = append(os.Environ(), "METRICS="+f.dir)
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// startPrometheus has one with the shipped rules scrape a core and textfiles every second, until the test ends.
func startPrometheus(t *testing.T, core *coreServer, backups *textfiles) *system.Prometheus {
	t.Helper()
	rules, err := os.ReadFile("../../deploy/prometheus/rules/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "alerts.yml")
	if err := os.WriteFile(file, regexp.MustCompile(`for: \d+[smh]`).ReplaceAll(rules, []byte("for: 1s")), 0o600); err != nil {
		t.Fatal(err)
	}
	return system.StartPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - {job_name: intents-core, static_configs: [{targets: [%q]}]}
  - {job_name: node, static_configs: [{targets: [%q]}]}
`, file, strings.TrimPrefix(core.OpsURL, "http://"), backups.address))
}

// firing are the alerts of the group database that fire, in order.
func firing(p *system.Prometheus) (names []string) {
	for _, labels := range p.Series(`ALERTS{alertstate="firing"}`) {
		if slices.Contains(databaseAlerts, labels["alertname"]) {
			names = append(names, labels["alertname"])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
