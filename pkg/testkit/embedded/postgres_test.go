package embedded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

func TestPostgres_Ephemeral(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, embedded.PostgresConfig{Ephemeral: true})
	for statement, want := range map[string]string{
		"SELECT current_user || ' ' || current_database()":                                "intents intents",
		"SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user":                "true",
		"SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = 'intents'": "UTF8",
		"SHOW fsync":            "off",
		"SHOW max_wal_size":     "1GB",
		"SHOW listen_addresses": "",
	} {
		expect(t, p, statement, want)
	}
	run, data := embedded.RunDirOf(p), embedded.DataOf(p)
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(run); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the run directory is still there: %v", err)
	}
	if left := embedded.ServerProcesses(data); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// An ephemeral database is in memory where there is plenty, unless it is to be measured.
func TestPostgres_EphemeralInMemory(t *testing.T) {
	t.Parallel()
	for _, onDisk := range []bool{false, true} {
		p := startPostgres(t, embedded.PostgresConfig{Ephemeral: true, OnDisk: onDisk})
		inMemory := strings.HasPrefix(embedded.DataOf(p), "/dev/shm/")
		if want := embedded.TmpfsHasSpace() && !onDisk; inMemory != want {
			t.Errorf("with OnDisk %t its data is in %s", onDisk, embedded.DataOf(p))
		}
	}
}

// The parent of a test's temporary directory is closed to everyone but its user, as /root is.
func TestPostgres_Durable(t *testing.T) {
	t.Parallel()
	config := embedded.PostgresConfig{Dir: filepath.Join(t.TempDir(), "a b", "postgres")}
	first := startPostgres(t, config)
	expect(t, first, "CREATE TABLE kept AS SELECT 42 AS answer", "")
	expect(t, first, "SHOW fsync", "on")
	expect(t, first, "SHOW max_wal_size", "4GB")

	_, err := embedded.StartPostgres(t.Context(), config)
	if !errors.Is(err, embedded.ErrLocked) {
		t.Errorf("a second start on the same data: got %v, want ErrLocked", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := startPostgres(t, config)
	expect(t, second, "SELECT answer FROM kept", "42")
}

func TestPostgres_RestartAfterKill(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, embedded.PostgresConfig{Dir: t.TempDir()})
	expect(t, p, "CREATE TABLE kept AS SELECT 42 AS answer", "")

	// A backend in the middle of its work does not notice that its server is gone.
	busy := make(chan error, 1)
	go func() {
		_, err := query(p.URL, "DO $$ BEGIN LOOP END LOOP; END $$")
		busy <- err
	}()
	asynctest.Eventually(t, "the backend is busy", func() bool {
		count, err := query(p.URL, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'")
		return err == nil && count == "1"
	})
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	url := p.URL
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.URL != url {
		t.Errorf("the URL changed from %s to %s", url, p.URL)
	}
	if err := <-busy; err == nil {
		t.Error("the busy backend outlived its server")
	}
	expect(t, p, "SELECT answer FROM kept", "42")
}

func TestPostgres_ParentKilled(t *testing.T) {
	t.Parallel()
	data := killedParent(t, "postgres", 1)[0]
	asynctest.Eventually(t, "no process of the server is left", func() bool { return len(embedded.ServerProcesses(data)) == 0 })

	startPostgres(t, embedded.PostgresConfig{Ephemeral: true})
	// Another start, in a test beside this one, may be about to remove it.
	asynctest.Eventually(t, "the next start has removed the directory of the killed one", func() bool {
		_, err := os.Stat(filepath.Dir(data))
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestPostgres_External(t *testing.T) {
	t.Parallel()
	const url = "postgres://someone@somewhere/something"
	p, err := embedded.StartPostgres(t.Context(), embedded.PostgresConfig{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if p.URL != url || p.PID() != 0 || p.Done() != nil {
		t.Errorf("got %+v", p)
	}
	if err := p.Restart(t.Context()); err == nil {
		t.Error("it was restarted")
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestStartPostgres_DataOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.StartPostgres(t.Context(), embedded.PostgresConfig{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "was made by Postgres 9") {
		t.Errorf("got %v", err)
	}
}

func TestStartPostgres_ContextCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := embedded.StartPostgres(ctx, embedded.PostgresConfig{Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func startPostgres(t *testing.T, config embedded.PostgresConfig) *embedded.Postgres {
	t.Helper()
	config.Log = func(line string) { t.Log(line) }
	p, err := embedded.StartPostgres(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func expect(t *testing.T, p *embedded.Postgres, statement, want string) {
	t.Helper()
	got, err := query(p.URL, statement)
	if err != nil || got != want {
		t.Errorf("%s: got %q, %v; want %q", statement, got, err, want)
	}
}
