package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"intents.internal/pkg/testkit/embedded"
)

// IgnoredParameters is the line that core needs in pgbouncer.ini.
const IgnoredParameters = "ignore_startup_parameters = statement_timeout, lock_timeout, idle_in_transaction_session_timeout"

// Pooler starts a PgBouncer with these lines in its section [pgbouncer] before a database and returns the URL through it. It is
// stopped with the test. Without a pgbouncer binary the test is skipped, and fails if CI is true.
func Pooler(tb testing.TB, databaseURL string, settings ...string) string {
	tb.Helper()
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	server := fmt.Sprintf("host=%s port=%d user=%s", config.Host, config.Port, config.User)
	if config.Password != "" {
		server += " password=" + config.Password
	}
	pooler, err := embedded.StartPgBouncer(tb.Context(), embedded.PgBouncerConfig{Server: server, Settings: settings})
	if errors.Is(err, embedded.ErrNoPgBouncer) && os.Getenv("CI") != "true" {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := pooler.Stop(); err != nil {
			tb.Error(err)
		}
	})
	through := url.URL{
		Scheme: "postgres", User: url.User(config.User), Path: "/" + config.Database,
		RawQuery: url.Values{"host": {pooler.Dir}, "port": {strconv.Itoa(pooler.Port)}}.Encode(),
	}
	return through.String()
}
