package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"
)

// ErrPooled is returned by Migrate for a connection that goes through a pooler.
var ErrPooled = errors.New("migrations need a connection to Postgres itself, and this one goes through a pooler, which could " +
	"lend the lock on the schema to others: set CORE_MIGRATE_DATABASE_URL to Postgres's own address")

// requireDirectConnection returns ErrPooled where a pooler stands before Postgres. Each backend of Postgres sends its process id to
// its client at the start, for cancelling; a pooler sends a number of its own.
func requireDirectConnection(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to migrate: %w", withPoolerHint(err))
	}
	defer conn.Close()
	var announced, actual uint32
	err = conn.Raw(func(driver any) error {
		announced = driver.(*stdlib.Conn).Conn().PgConn().PID()
		return nil
	})
	if err == nil {
		err = conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&actual)
	}
	if err != nil {
		return fmt.Errorf("read the process id of the connection that migrates: %w", err)
	}
	if announced != actual {
		return ErrPooled
	}
	return nil
}
