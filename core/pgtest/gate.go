package pgtest

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Gate is a proxy before a database that can be shut, for tests of an outage. Shutting it closes every connection and each new one
// at once, as a dying server does.
type Gate struct {
	// URL reaches the database through the gate.
	URL string

	listener        net.Listener
	work            sync.WaitGroup
	mu              sync.Mutex
	network, target string
	// diverted is where the next diversions connections lead.
	divertedNetwork, diverted string
	diversions                int
	shut                      bool
	passed, refused           int
	clients                   map[net.Conn]bool
}

// NewGate starts an open gate before the database at a URL. It is closed with the test.
func NewGate(tb testing.TB, databaseURL string) *Gate {
	tb.Helper()
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	g := &Gate{listener: listener, clients: map[net.Conn]bool{}}
	g.network, g.target = pgconn.NetworkAddress(config.Host, config.Port)
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: listener.Addr().String(),
		Path: "/" + config.Database, RawQuery: "sslmode=disable",
	}
	g.URL = through.String()
	g.work.Go(g.accept)
	tb.Cleanup(func() {
		_ = listener.Close()
		g.Shut()
		g.work.Wait()
	})
	return g
}

// Closed is the URL of a database on a port where nothing listens.
func Closed(tb testing.TB) string {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer listener.Close()
	return fmt.Sprintf("postgres://intents@%s/intents?sslmode=disable", listener.Addr())
}

// Shut closes all connections and refuses new ones.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for client := range g.clients {
		_ = client.Close()
	}
}

// Open lets connections through again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}

// SetTarget puts the gate before another server from now on, and closes all connections. The server must have the same databases
// and users.
func (g *Gate) SetTarget(tb testing.TB, databaseURL string) {
	tb.Helper()
	network, target := addressOf(tb, databaseURL)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.network, g.target = network, target
	for client := range g.clients {
		_ = client.Close()
	}
}

// addressOf is where the server of a URL listens.
func addressOf(tb testing.TB, databaseURL string) (network, address string) {
	tb.Helper()
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	return pgconn.NetworkAddress(config.Host, config.Port)
}

// Divert leads the next n connections to another server, as an address does whose servers change.
func (g *Gate) Divert(tb testing.TB, databaseURL string, n int) {
	tb.Helper()
	network, target := addressOf(tb, databaseURL)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.divertedNetwork, g.diverted = network, target
	g.diversions = n
}

// Passed is the number of connections that were led to a server.
func (g *Gate) Passed() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passed
}

// Refused is the number of connections that came while the gate was shut.
func (g *Gate) Refused() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

func (g *Gate) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.work.Go(func() { g.proxy(client) })
	}
}

func (g *Gate) proxy(client net.Conn) {
	defer client.Close()
	network, target, open := g.register(client)
	if !open {
		return
	}
	defer g.unregister(client)
	database, err := net.Dial(network, target) //nolint:noctx // it is local and the gate closes what it opens
	if err != nil {
		return
	}
	defer database.Close()
	var one sync.WaitGroup
	one.Go(func() { _, _ = io.Copy(database, client); _ = database.Close() })
	_, _ = io.Copy(client, database)
	_ = client.Close()
	one.Wait()
}

func (g *Gate) register(client net.Conn) (network, target string, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		g.refused++ // Postgres, for which a connection is dear, does not see it
		return "", "", false
	}
	g.clients[client] = true
	g.passed++
	if g.diversions > 0 {
		g.diversions--
		return g.divertedNetwork, g.diverted, true
	}
	return g.network, g.target, true
}

func (g *Gate) unregister(client net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.clients, client)
}
