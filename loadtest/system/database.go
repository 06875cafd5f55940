package system

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Connect calls use with a connection of its own to a database.
func Connect(t *testing.T, databaseURL string, use func(context.Context, *pgx.Conn) error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := use(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
}

// Execute changes a database behind core's back.
func Execute(t *testing.T, databaseURL, sql string, values ...any) {
	t.Helper()
	Connect(t, databaseURL, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, values...)
		return err
	})
}

// QueryRow reads the one value that sql selects from a database.
func QueryRow[T any](t *testing.T, databaseURL, sql string, values ...any) (value T) {
	t.Helper()
	Connect(t, databaseURL, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, sql, values...).Scan(&value)
	})
	return value
}
