package command_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/topologytest"
)

// Core verifies Postgres by an authority of the operator's own, which lies in a folder as a kubelet mounts a ConfigMap.
func TestMigrate_PrivateAuthority(t *testing.T) {
	t.Parallel()
	databaseURL, authority := startTLSPostgres(t)
	mounted := t.TempDir()
	text, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	versioned := filepath.Join(mounted, "..2026_11_22_10_00_00.1")
	if err := errors.Join(os.Mkdir(versioned, 0o755), os.WriteFile(filepath.Join(versioned, "ca.crt"), text, 0o600),
		os.Symlink(filepath.Base(versioned), filepath.Join(mounted, "..data")),
		os.Symlink(filepath.Join("..data", "ca.crt"), filepath.Join(mounted, "ca.crt"))); err != nil {
		t.Fatal(err)
	}
	if got := core(t, "", on(databaseURL), "migrate"); got.Code != 1 || !strings.Contains(got.ErrOut, "certificate signed by unknown authority") {
		t.Errorf("without the authority: %+v", got)
	}
	got := core(t, "", append(on(databaseURL), "SSL_CERT_DIR="+mounted), "migrate")
	if got.Code != 0 || !strings.HasPrefix(got.Out, "applied ") {
		t.Errorf("with it: %+v", got)
	}
}

// startTLSPostgres starts a server that listens on TCP with a certificate, and returns a URL that has it verified.
func startTLSPostgres(t *testing.T) (databaseURL, authority string) {
	t.Helper()
	port, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	server, err := embedded.StartPostgres(t.Context(), embedded.PostgresConfig{
		Ephemeral: true, Settings: []string{"listen_addresses=127.0.0.1", fmt.Sprintf("port=%d", port)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	local, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	local.RawQuery += fmt.Sprintf("&port=%d", port)
	db, err := sql.Open("pgx", local.String())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var data string
	if err := db.QueryRowContext(t.Context(), `SELECT current_setting('data_directory')`).Scan(&data); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, err := topologytest.NewCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	give(t, certificate.Authority, filepath.Join(data, "server.crt"))
	give(t, filepath.Join(dir, "redis.key"), filepath.Join(data, "server.key"))
	for _, statement := range []string{`ALTER SYSTEM SET ssl = on`, `SELECT pg_reload_conf()`} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	asynctest.Eventually(t, "the server speaks TLS", func() bool {
		var ssl string
		if err := db.QueryRowContext(t.Context(), `SHOW ssl`).Scan(&ssl); err != nil {
			t.Fatal(err)
		}
		return ssl == "on"
	})
	return fmt.Sprintf("postgres://intents@127.0.0.1:%d/intents?sslmode=verify-full", port), certificate.Authority
}

// give copies a file into the server's directory, whose owner it then belongs to.
func give(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := os.Stat(filepath.Dir(to))
	if err != nil {
		t.Fatal(err)
	}
	stat, _ := owner.Sys().(*syscall.Stat_t)
	if err := errors.Join(os.WriteFile(to, text, 0o600), os.Chown(to, int(stat.Uid), int(stat.Gid))); err != nil {
		t.Fatal(err)
	}
}
