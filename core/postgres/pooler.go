package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// ErrPooled is returned by Migrate for a connection that a pooler shares between clients.
var ErrPooled = errors.New("migrations need a connection to Postgres itself, and this one is a transaction pooler's, which " +
	"would lend the lock on the schema to others: set CORE_MIGRATE_DATABASE_URL to Postgres's own address")

const (
	// poolerRounds is how often two connections are compared. An idle pooler lends both the same server connection at once;
	// a busy one does so sooner or later, or gives one of them another.
	poolerRounds = 50
	// poolerTimeout bounds the comparison, for a pooler that has no server connection free.
	poolerTimeout = 10 * time.Second
)

// refusePooler returns ErrPooled where the pool's only connection does not keep to one backend of Postgres's.
//
// Postgres tells each client the process id of its backend when it connects, for cancelling. A pooler tells an id of its
// own, so where the two are the same there is none. Otherwise it must be one that gives each client a backend for as long
// as it stays, and not just for a transaction.
func refusePooler(ctx context.Context, pool *sql.DB, config *pgx.ConnConfig) (err error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to migrate: %w", withPoolerHint(err))
	}
	defer conn.Close()
	var told int64
	err = conn.Raw(func(driver any) error {
		told = int64(driver.(*stdlib.Conn).Conn().PgConn().PID())
		return nil
	})
	if err != nil {
		return fmt.Errorf("connect to migrate: %w", err)
	}
	own, err := backend(ctx, conn)
	if err != nil || own == told {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, poolerTimeout, ErrPooled)
	defer cancel()
	second := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, second.Close()) }()
	other, err := second.Conn(ctx)
	if err != nil {
		return errors.Join(context.Cause(ctx), fmt.Errorf("connect a second time to see whether this is a pooler: %w", err))
	}
	defer other.Close()
	for range poolerRounds {
		others, err := backend(ctx, other)
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		again, err := backend(ctx, conn)
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if again != own || others == own {
			return ErrPooled
		}
	}
	return nil
}

// backend is the process id of the server's side of a connection, as the server tells it.
func backend(ctx context.Context, conn *sql.Conn) (pid int64, err error) {
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return 0, fmt.Errorf("ask for the process id of the connection: %w", err)
	}
	return pid, nil
}
