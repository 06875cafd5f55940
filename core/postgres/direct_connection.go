package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// ErrPooled is returned by Migrate for a connection that goes through a pooler.
var ErrPooled = errors.New("migrations need a connection to Postgres itself, and this one goes through a pooler, which could " +
	"lend the lock on the schema to others: set CORE_MIGRATE_DATABASE_URL to Postgres's own address")

// requireDirectConnection returns ErrPooled for a connection through a pooler.
func requireDirectConnection(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to migrate: %w", withPoolerHint(err))
	}
	defer conn.Close()
	var direct bool
	err = conn.Raw(func(driver any) (err error) {
		direct, err = IsDirect(ctx, driver.(*stdlib.Conn).Conn())
		return err
	})
	if err != nil {
		return err
	}
	if !direct {
		return ErrPooled
	}
	return nil
}

// IsDirect reports whether a connection goes to Postgres itself. At the start each backend of Postgres sends its process id, for
// cancelling; a pooler sends another number.
func IsDirect(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var backend uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return false, fmt.Errorf("read the process id of a connection: %w", err)
	}
	return backend == conn.PgConn().PID(), nil
}
