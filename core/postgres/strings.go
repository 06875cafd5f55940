package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// standardStrings is the setting by which a backslash in a string constant is an ordinary character. bun, which writes values into
// the SQL text, escapes only quotes: without the setting a name that ends in a backslash would end outside its quotes.
const standardStrings = "standard_conforming_strings"

// ErrBackslashes is returned for a database in whose strings a backslash is an escape character.
var ErrBackslashes = errors.New("standard_conforming_strings is not on, so names could be read as SQL; have the pooler pass it on, or set it " +
	"for core's role: ALTER ROLE … SET standard_conforming_strings = on")

// requireStandardStrings refuses every connection whose server does not report the setting as on, which Postgres does at the start
// of a connection. Then it calls next unless that is nil.
func requireStandardStrings(next pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		if reported := conn.ParameterStatus(standardStrings); reported != "on" {
			return fmt.Errorf("%w; the server reports %q", ErrBackslashes, reported)
		}
		if next != nil {
			return next(ctx, conn)
		}
		return nil
	}
}
