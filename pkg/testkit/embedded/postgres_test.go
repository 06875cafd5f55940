package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// The data of a directory is kept from start to start, safe from a crash of the machine and by one server at a time. The parent of a test's
// temporary directory is closed to everyone but its user, as /root is.
func TestPostgres_Durable(t *testing.T) {
	t.Parallel()
	config := embedded.PostgresConfig{Dir: filepath.Join(t.TempDir(), "a b", "postgres")}
	first := startPostgres(t, config)
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", first.PID()))
	if err == nil && bytes.Contains(command, []byte("fsync=off")) {
		t.Errorf("it is not durable: %q", command)
	}
	made := systemIdentifier(t, first)
	if _, err := embedded.StartPostgres(t.Context(), config); !errors.Is(err, embedded.ErrLocked) {
		t.Errorf("a second start on the same data: got %v, want ErrLocked", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if found := systemIdentifier(t, startPostgres(t, config)); found != made {
		t.Errorf("the second start made another database, %x instead of %x", found, made)
	}
}

// systemIdentifier is what initdb gives each database, the first member of pg_control.
func systemIdentifier(t *testing.T, p *embedded.Postgres) [8]byte {
	t.Helper()
	control, err := os.ReadFile(filepath.Join(embedded.DataOf(p), "global", "pg_control"))
	if err != nil {
		t.Fatal(err)
	}
	return [8]byte(control)
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
