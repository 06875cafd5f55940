package postgres

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"
)

// boundConn is a connection that passes values as the parameters $1, $2, … of the one statement that runs on it. bun writes all
// other values into the SQL text, which Postgres shows in its error log and in pg_stat_activity. Hashes of passwords, keys,
// session tokens, reset tokens, form tokens, nonces and challenges are bound, so that the text contains none of them.
type boundConn struct {
	bun.IConn
	values []any
}

// Bind wraps the *sql.DB or *sql.Tx below bun's for the Conn method of a query, so that bun's hooks still see the statement.
func Bind(conn bun.IConn, values ...any) bun.IConn { return boundConn{conn, values} }

// ExecContext implements bun.IConn.
func (c boundConn) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	return c.IConn.ExecContext(ctx, query, c.values...)
}

// QueryContext implements bun.IConn.
func (c boundConn) QueryContext(ctx context.Context, query string, _ ...any) (*sql.Rows, error) {
	return c.IConn.QueryContext(ctx, query, c.values...)
}
