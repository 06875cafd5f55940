package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

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

// readWriteState asks a server what requireReadWrite reads.
const readWriteState = "SELECT pg_is_in_recovery()::text AS recovering, current_setting('transaction_read_only') AS read_only"

// namesTarget reports whether a URL or the environment says itself which servers are connected to, with the names of libpq.
func namesTarget(url string) bool {
	return strings.Contains(url, "target_session_attrs") || os.Getenv("PGTARGETSESSIONATTRS") != ""
}

// requireReadWrite refuses every connection to a server that takes no writes, like target_session_attrs=read-write of libpq, so that
// the next host of the URL is tried. Then it calls next.
func requireReadWrite(next pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		results, err := conn.Exec(ctx, readWriteState).ReadAll()
		if err != nil {
			return fmt.Errorf("ask whether the server takes writes: %w", err)
		}
		state := results[0].Rows[0]
		if err := checkReadWrite(string(state[0]), string(state[1])); err != nil {
			return err
		}
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
