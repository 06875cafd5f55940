package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrQueueFull is returned for a write while too many others wait for a commit.
var ErrQueueFull = errors.New("too many inserts are waiting for the database")

// Unavailable reports whether an error means that the database is down, read-only, full, overloaded or too slow, so that the same
// request may succeed later. An error of Postgres does unless its SQLSTATE is that of a wrong statement.
func Unavailable(err error) bool {
	var connect *pgconn.ConnectError
	var network *net.OpError
	switch {
	case errors.As(err, &connect), errors.As(err, &network),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, pgconn.ErrConnClosed),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrQueueFull), errors.Is(err, errNoConnection):
		return true
	}
	state := SQLState(err)
	return state != "" && !faultOf(state).defect
}

// Busy reports whether a wait for a connection or for a lock timed out.
func Busy(err error) bool {
	return errors.Is(err, errNoConnection) || IsLocked(err)
}
