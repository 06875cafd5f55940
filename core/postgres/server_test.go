package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

// A role without any privilege sees connections, slots, and that nothing replicates.
func TestReadServer(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	url := pgtest.Database(t)
	owner := pgtest.Open(t, url)
	role := "plain_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	pgtest.Exec(t, owner, `CREATE ROLE `+role+` NOSUPERUSER`)
	t.Cleanup(func() { _, _ = owner.Exec(`DROP ROLE ` + role) })
	patient := pgtest.Patient()
	patient.Metrics = registry
	store := pgtest.OpenWith(t, url+"&role="+role, patient)
	read := func() map[string]float64 {
		t.Helper()
		pgtest.Must(t, store.ReadServer(t.Context()))
		return metricstest.Values(t, registry)
	}
	before := read()
	if open, limit := before["intents_core_postgres_server_connections"], before["intents_core_postgres_server_connections_limit"]; open < 1 || limit < open {
		t.Errorf("%g connections of %g", open, limit)
	}
	want := map[string]float64{"intents_core_postgres_synchronous_replication": 0, "intents_core_postgres_synchronous_standbys": 0}
	for name, value := range want {
		if got, ok := before[name]; !ok || got != value {
			t.Errorf("%s is %g, want %g", name, got, value)
		}
	}

	const slot = "test_read_server"
	pgtest.Exec(t, owner, `SELECT pg_create_physical_replication_slot('`+slot+`', true)`)
	dropped := false
	t.Cleanup(func() {
		if !dropped {
			_, _ = owner.Exec(`SELECT pg_drop_replication_slot('` + slot + `')`)
		}
	})
	made := read()
	got := map[string]float64{}
	for _, name := range []string{"slot_active", "slot_lost"} {
		value, ok := made["intents_core_postgres_"+name+" "+slot]
		if !ok {
			t.Errorf("there is no %s", name)
		}
		got[name] = value
	}
	if diff := cmp.Diff(map[string]float64{"slot_active": 0, "slot_lost": 0}, got); diff != "" {
		t.Error(diff)
	}
	pgtest.Exec(t, owner, `SELECT pg_drop_replication_slot('`+slot+`')`)
	dropped = true
	if _, there := read()["intents_core_postgres_slot_active "+slot]; there {
		t.Error("a slot that is gone has a series")
	}
}

// How standbys replicate is seen by a member of pg_read_all_stats only; for others it is unknown, and not 0.
func TestReadServer_Standbys(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	owner := pgtest.Open(t, servers.Primary.URL)
	for _, statement := range []string{
		`CREATE ROLE plain`, `CREATE ROLE monitor IN ROLE pg_read_all_stats`,
		`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`,
	} {
		pgtest.Exec(t, owner, statement)
	}
	asynctest.Eventually(t, "the standby is synchronous", func() bool {
		return pgtest.LookUp[bool](t, owner, `SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'`)
	})
	for role, want := range map[string]string{"plain": "1, false", "monitor": "1, true 1"} {
		registry := prometheus.NewPedanticRegistry()
		patient := pgtest.Patient()
		patient.Metrics = registry
		store := pgtest.OpenWith(t, servers.Primary.URL+"&role="+role, patient)
		pgtest.Must(t, store.ReadServer(t.Context()))
		all := metricstest.Values(t, registry)
		standbys, seen := all["intents_core_postgres_synchronous_standbys"]
		got := fmt.Sprintf("%g, %t", all["intents_core_postgres_synchronous_replication"], seen)
		if seen {
			got += fmt.Sprintf(" %g", standbys)
		}
		if got != want {
			t.Errorf("%s sees %s, want %s", role, got, want)
		}
	}
}
