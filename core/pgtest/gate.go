package pgtest

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intents.internal/pkg/testkit/faultproxy"
)

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
