package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/faultproxy"
)

// Replicated is a Postgres with a streaming replica, both only for the test, because what a test does to a server affects all its
// databases.
type Replicated struct {
	Primary, Replica *embedded.Postgres
}

// NewReplicated starts both, with a migrated database, in a few seconds. They are stopped with the test.
func NewReplicated(tb testing.TB) Replicated {
	tb.Helper()
	primary, err := embedded.StartPostgres(tb.Context(), embedded.PostgresConfig{Ephemeral: true})
	if err != nil {
		tb.Fatal(err)
	}
	stopAfter(tb, primary)
	store, err := rooms.Open(primary.URL, postgres.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Migrate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return Replicated{Primary: primary, Replica: NewReplica(tb, primary)}
}

// OpenAny opens a store on a server that may be a standby or read-only, as an operator would, and closes it with the test.
func OpenAny(tb testing.TB, serverURL string) *rooms.Rooms {
	tb.Helper()
	target, err := url.Parse(serverURL)
	if err != nil {
		tb.Fatal(err)
	}
	query := target.Query()
	query.Set("target_session_attrs", "any")
	target.RawQuery = query.Encode()
	return Open(tb, target.String())
}

// NewReplica starts a replica of a private Postgres. It is stopped with the test.
func NewReplica(tb testing.TB, of *embedded.Postgres) *embedded.Postgres {
	tb.Helper()
	replica, err := of.StartReplica(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	stopAfter(tb, replica)
	return replica
}

func stopAfter(tb testing.TB, p *embedded.Postgres) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Error(err)
		}
	})
}

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

// Gate is a proxy before a database, for tests of an outage.
type Gate struct {
	*faultproxy.Proxy
	// URL reaches the database through the gate.
	URL string
}

// NewGate starts a gate before the database at a URL. It is closed with the test.
func NewGate(tb testing.TB, databaseURL string) *Gate {
	tb.Helper()
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	g := &Gate{Proxy: faultproxy.Start(tb, addressOf(tb, databaseURL))}
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: g.Address,
		Path: "/" + config.Database, RawQuery: "sslmode=disable",
	}
	g.URL = through.String()
	return g
}

// Closed is the URL of a database on a port where nothing listens.
func Closed(tb testing.TB) string {
	tb.Helper()
	p := faultproxy.Silent(tb)
	p.Refuse()
	return fmt.Sprintf("postgres://intents@%s/intents?sslmode=disable", p.Address)
}

// SetTarget puts the gate before another server from now on, and closes all connections. The server must have the same databases
// and users.
func (g *Gate) SetTarget(tb testing.TB, databaseURL string) {
	tb.Helper()
	g.Proxy.SetTarget(addressOf(tb, databaseURL))
}

// Divert leads the next n connections to another server, as an address does whose servers change.
func (g *Gate) Divert(tb testing.TB, databaseURL string, n int) {
	tb.Helper()
	g.Proxy.Divert(addressOf(tb, databaseURL), n)
}

// addressOf is where the server of a URL listens.
func addressOf(tb testing.TB, databaseURL string) (address string) {
	tb.Helper()
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	_, address = pgconn.NetworkAddress(config.Host, config.Port)
	return address
}
