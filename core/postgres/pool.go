package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/pkg/telemetry"
)

var errNoConnection = errors.New("all connections to the database are in use: CORE_DATABASE_CONNECTIONS bounds them")

// openPool makes a pgxpool under bun, which connects on first use, to write only to servers that take writes. Its metrics have this name.
func (d *DB) openPool(name string, conn *pgx.ConnConfig, toWrite bool, o Options) (*bun.DB, *connector, error) {
	config, err := pgxpool.ParseConfig(conn.ConnString())
	if err != nil {
		return nil, nil, errBadURL // err may contain the password
	}
	config.ConnConfig = conn
	if toWrite && !namesTarget(conn) {
		config.BeforeConnect, config.PrepareConn = newReadOnlyServers().beforeConnect, refuseStandby
	}
	config.MaxConns = int32(o.MaxConnections) //nolint:gosec // at most a few hundred
	config.MaxConnIdleTime = 5 * time.Minute
	config.MaxConnLifetimeJitter = 10 * time.Minute
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, nil, fmt.Errorf("open the connection pool: %w", err)
	}
	d.pools = append(d.pools, pool)
	bounded := &connector{Connector: stdlib.GetPoolConnector(pool), pool: pool, timeout: o.AcquireTimeout}
	if o.Metrics != nil {
		o.Metrics.MustRegister(telemetry.Pool("core", name, func() telemetry.PoolState {
			stat := pool.Stat()
			return telemetry.PoolState{
				Limit: int(stat.MaxConns()), Open: int(stat.TotalConns()), InUse: int(stat.AcquiredConns()),
				Waits: uint64(stat.EmptyAcquireCount()), TimedOut: bounded.timedOut.Load(), //nolint:gosec // a count
			}
		}))
	}
	sqlDB := sql.OpenDB(bounded)
	sqlDB.SetMaxIdleConns(0) // the pool keeps them
	db := bun.NewDB(sqlDB, pgdialect.New()).WithQueryHook(d.limits)
	if d.traced {
		db = db.WithQueryHook(newQueryTracer(conn))
	}
	return db, bounded, nil
}

// closeTimeout bounds the wait for connections in use when the pool closes.
const closeTimeout = time.Second

func closePools(pools []*pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for _, pool := range pools {
			pool.Close()
		}
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout):
	}
}

// connector bounds the wait for a connection in use. The wait for a new connection is bounded by pgx.
type connector struct {
	driver.Connector
	pool    *pgxpool.Pool
	timeout time.Duration
	// timedOut counts errNoConnection. CanceledAcquireCount of the pool also counts callers that left and repeated waits.
	timedOut atomic.Uint64
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	return acquire(ctx, c, c.Connector.Connect)
}

// acquire borrows a connection. It waits again while connections are being opened, and once more if not all are in use: one may
// have been opened or released just as the wait ended.
func acquire[Conn any](ctx context.Context, c *connector, borrow func(context.Context) (Conn, error)) (Conn, error) {
	for last := false; ; {
		bounded, cancel := context.WithTimeout(ctx, c.timeout)
		conn, err := borrow(bounded)
		inTime := bounded.Err() == nil
		cancel()
		if err == nil || inTime || ctx.Err() != nil {
			return conn, err
		}
		stat := c.pool.Stat()
		if stat.ConstructingConns() > 0 {
			continue
		}
		if last || stat.AcquiredConns() == stat.MaxConns() {
			c.timedOut.Add(1)
			return conn, fmt.Errorf("%w: %w", errNoConnection, err)
		}
		last = true
	}
}
