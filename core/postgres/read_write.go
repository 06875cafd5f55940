package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrStandby is returned for a server that replays the log of another one.
	ErrStandby = errors.New("the server is a standby, which takes no writes; have CORE_DATABASE_URL lead to the primary, or name the hosts of both")
	// ErrReadOnly is returned for a primary that takes no writes.
	ErrReadOnly = errors.New("the server is read-only: default_transaction_read_only is on, as a managed server has it while its disk is full")
)

// inHotStandby is a parameter that Postgres reports since version 14: whether the server of a connection is a standby.
const inHotStandby = "in_hot_standby"

// readWriteState asks a server what checkReadWrite judges.
const readWriteState = "SELECT pg_is_in_recovery()::text AS recovering, current_setting('transaction_read_only') AS read_only"

// namesTarget reports whether a URL or the environment says itself which servers are connected to, with the names of libpq.
func namesTarget(config *pgx.ConnConfig) bool {
	return strings.Contains(config.ConnString(), "target_session_attrs") || os.Getenv("PGTARGETSESSIONATTRS") != ""
}

// The pause before an address that led to a server without writes is dialed again, on average: it doubles up to the longest.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = time.Second
)

// readOnlyServers are the addresses that led to a server that takes no writes. A connection costs such a server a process and an
// authentication, so that one connection after each pause asks it again, and all others fail without a dial.
type readOnlyServers struct {
	mu      sync.Mutex
	refused map[string]*refusal
}

// refusal is what an address is remembered for.
type refusal struct {
	// err is ErrStandby or ErrReadOnly.
	err error
	// until is the end of the pause.
	until  time.Time
	pauses backoff.ExponentialBackOff
}

func (r *refusal) pause(now time.Time) { r.until = now.Add(r.pauses.NextBackOff()) }

// readWrite is one connection of a configuration that is refused by every server that takes no writes, like
// target_session_attrs=read-write of libpq, so that the next host of the URL is tried.
type readWrite struct {
	servers *readOnlyServers
	// asked is the address that the connection dialed last: with sslmode=prefer it dials twice, with TLS and without.
	asked string
}

func newReadOnlyServers() *readOnlyServers { return &readOnlyServers{refused: map[string]*refusal{}} }

// beforeConnect is a pgxpool.Config.BeforeConnect.
func (s *readOnlyServers) beforeConnect(_ context.Context, config *pgx.ConnConfig) error {
	c := &readWrite{servers: s}
	config.DialFunc = c.dial(config.DialFunc)
	config.ValidateConnect = c.validate(config.ValidateConnect)
	return nil
}

// dial calls next unless the address is remembered and its pause lasts.
func (c *readWrite) dial(next pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != c.asked {
			if err := c.servers.enter(address); err != nil {
				return nil, err
			}
		}
		c.asked = address
		conn, err := next(ctx, network, address)
		if err != nil {
			c.servers.forget(address) // why it cannot be reached is the newer cause
		}
		return conn, err
	}
}

// enter returns why an address is not dialed. The first that comes after a pause asks the server, and the others wait for another pause.
func (s *readOnlyServers) enter(address string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, now := s.refused[address], time.Now()
	switch {
	case r == nil:
		return nil
	case now.Before(r.until):
		return r.err
	}
	r.pause(now)
	return nil
}

// refuse remembers why the server at an address is refused.
func (s *readOnlyServers) refuse(address string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refused[address]; r != nil { // the pause began when it was asked
		r.err = err
		return
	}
	r := &refusal{err: err, pauses: backoff.ExponentialBackOff{
		InitialInterval: firstPause, MaxInterval: longestPause,
		Multiplier: 2, RandomizationFactor: backoff.DefaultRandomizationFactor, // cores do not ask at the same time
	}}
	r.pause(time.Now())
	s.refused[address] = r
}

func (s *readOnlyServers) forget(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, address)
}

// validate asks the server of a new connection whether it takes writes. Then it calls next.
func (c *readWrite) validate(next pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		results, err := conn.Exec(ctx, readWriteState).ReadAll()
		if err != nil {
			return fmt.Errorf("ask whether the server takes writes: %w", err)
		}
		state := results[0].Rows[0]
		if err := checkReadWrite(string(state[0]), string(state[1])); err != nil {
			c.servers.refuse(c.asked, err)
			return err
		}
		c.servers.forget(c.asked)
		return next(ctx, conn)
	}
}

// checkReadWrite judges the two columns of readWriteState.
func checkReadWrite(recovering, readOnly string) error {
	switch {
	case recovering == "true":
		return ErrStandby
	case readOnly == "on":
		return ErrReadOnly
	}
	return nil
}

// refuseStandby is a pgxpool.Config.PrepareConn that drops a connection whose server has become a standby, as it can behind a pooler
// that passes the parameter on.
func refuseStandby(_ context.Context, conn *pgx.Conn) (bool, error) {
	return conn.PgConn().ParameterStatus(inHotStandby) != "on", nil
}

// CheckReadWrite returns an error for a database that does not answer, and ErrStandby or ErrReadOnly for one that takes no writes.
func (d *DB) CheckReadWrite(ctx context.Context) error {
	var recovering, readOnly string
	if err := d.NewRaw(readWriteState).Scan(ctx, &recovering, &readOnly); err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	return checkReadWrite(recovering, readOnly)
}
