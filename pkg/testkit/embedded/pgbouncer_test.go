package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"intents.internal/pkg/testkit/embedded"
)

func TestPgBouncer(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, embedded.PostgresConfig{Ephemeral: true})
	server := "host=" + embedded.RunDirOf(p) + " user=intents"
	b := startPgBouncer(t, embedded.PgBouncerConfig{Server: server, Settings: []string{"pool_mode = transaction"}})
	url := fmt.Sprintf("postgres://intents@/intents?host=%s&port=%d", b.Dir, b.Port)
	through := &embedded.Postgres{URL: url}
	expect(t, through, "SELECT current_database()::text", "intents")

	_, err := embedded.StartPgBouncer(t.Context(), embedded.PgBouncerConfig{Server: server, Settings: []string{"pool_mode = none"}})
	if err == nil || !strings.Contains(err.Error(), "pool_mode") {
		t.Errorf("a setting that it refuses: %v", err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the run directory is still there: %v", err)
	}
}

// startPgBouncer skips the test where there is none, unless CI wants everything.
func startPgBouncer(t *testing.T, config embedded.PgBouncerConfig) *embedded.PgBouncer {
	t.Helper()
	config.Log = func(line string) { t.Log(line) }
	b, err := embedded.StartPgBouncer(t.Context(), config)
	if errors.Is(err, embedded.ErrNoPgBouncer) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}
