package embedded_test

import (
	"testing"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

func TestStartReplica(t *testing.T) {
	t.Parallel()
	primary := startPostgres(t, embedded.PostgresConfig{Ephemeral: true})
	replica, err := primary.StartReplica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := replica.Stop(); err != nil {
			t.Error(err)
		}
	})
	expect(t, replica, "SELECT pg_is_in_recovery()::text", "true")
	expect(t, primary, "CREATE TABLE kept AS SELECT 42 AS answer", "")
	follows := func(what string) {
		t.Helper()
		asynctest.Eventually(t, what, func() bool {
			answer, err := query(replica.URL, "SELECT answer FROM kept")
			return err == nil && answer == "42"
		})
	}
	follows("the replica has what the primary has")

	// It is silent while it is suspended, goes on afterwards, and comes back from a restart.
	if err := replica.Suspend(); err != nil {
		t.Fatal(err)
	}
	expect(t, primary, "UPDATE kept SET answer = 43", "")
	if err := replica.Resume(); err != nil {
		t.Fatal(err)
	}
	asynctest.Eventually(t, "the replica goes on", func() bool {
		answer, err := query(replica.URL, "SELECT answer FROM kept")
		return err == nil && answer == "43"
	})
	if err := replica.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, primary, "UPDATE kept SET answer = 42", "")
	follows("the replica follows again")

	expect(t, replica, "SELECT pg_promote()::text", "true")
	expect(t, replica, "SELECT pg_is_in_recovery()::text", "false")
}

func TestStartReplica_External(t *testing.T) {
	t.Parallel()
	p, err := embedded.StartPostgres(t.Context(), embedded.PostgresConfig{URL: "postgres://someone@somewhere/something"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.StartReplica(t.Context()); err == nil {
		t.Error("it was copied")
	}
	if err := p.Suspend(); err == nil {
		t.Error("it was suspended")
	}
}

// A suspended server is stopped all the same.
func TestPostgres_StopSuspended(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, embedded.PostgresConfig{Ephemeral: true})
	data := embedded.DataOf(p)
	if err := p.Suspend(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if left := embedded.ServerProcesses(data); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}
