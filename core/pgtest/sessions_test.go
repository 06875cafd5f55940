package pgtest_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"intents.internal/core/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// After Terminate a connection ends for the driver, as without the cache: it reads until the end, and what it has locked stays locked so long.
func TestSessions_Terminate(t *testing.T) {
	t.Parallel()
	pooled, err := pgtest.New(t).Acquire(t.Context())
	pgtest.Must(t, err)
	driver := pooled.Hijack().PgConn()
	terminate, err := new(pgproto3.Terminate).Encode(nil)
	pgtest.Must(t, err)
	pgtest.Must(t, driver.Conn().SetDeadline(time.Now().Add(10*time.Second)))
	if _, err := driver.Conn().Write(terminate); err != nil {
		t.Fatal(err)
	}
	if n, err := driver.Conn().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after Terminate %d bytes and %v are read, not the end", n, err)
	}
	pgtest.Must(t, driver.Conn().Close())
}
