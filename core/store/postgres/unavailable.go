package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrQueueFull is returned for a write while too many others wait for a commit.
var ErrQueueFull = errors.New("too many inserts are waiting for the database")

// Unavailable reports whether an error means that the database is down, full, overloaded or too slow, so that the same request
// may succeed later.
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
	// Connection exception, insufficient resources, operator intervention (a statement timeout among them), system error; and a
	// lock that was not granted in time.
	for _, class := range []string{"08", "53", "57", "58"} {
		if strings.HasPrefix(state, class) {
			return true
		}
	}
	return IsLocked(err)
}

// lockNotAvailable is the SQLSTATE of a lock that was not granted within lock_timeout.
const lockNotAvailable = "55P03"

// Busy reports whether a wait for a connection or for a lock timed out.
func Busy(err error) bool {
	return errors.Is(err, errNoConnection) || IsLocked(err)
}

// IsLocked reports whether a lock was not granted in time.
func IsLocked(err error) bool { return SQLState(err) == lockNotAvailable }
