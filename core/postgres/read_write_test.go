package postgres_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/asynctest"
)

// writes makes intents and nonces at the same time, each nonce in a transaction of its own, and returns how many nonces were written. It ends
// the test at an error that is no outage.
func writes(t *testing.T, core *rooms.Rooms, known *registry.Snapshot) (written int) {
	t.Helper()
	const many = 40
	outcomes := make(chan error, 2*many)
	var work sync.WaitGroup
	var made atomic.Int64
	for range many {
		work.Go(func() {
			_, err := core.Pool().ExecContext(t.Context(), `INSERT INTO nonces (hash, expires_at)
				VALUES (sha256($1::bytea), now())`, uuid.NewString())
			if err == nil {
				made.Add(1)
			}
			outcomes <- err
		})
		work.Go(func() {
			_, err := core.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, known, uuid.New(), pgtest.TransferBody), intents.Idempotency{})
			outcomes <- err
		})
	}
	work.Wait()
	close(outcomes)
	for err := range outcomes {
		if err != nil && !postgres.Unavailable(err) {
			t.Fatalf("%v counts as a defect", err)
		}
	}
	return int(made.Load())
}

// impatient opens a store as core does, but for the waits of a busy machine, so that what fails does so at once.
func impatient(t *testing.T, url string) *rooms.Rooms {
	t.Helper()
	return pgtest.OpenWith(t, url, postgres.Options{MaxConnections: 8, AcquireTimeout: 10 * time.Second, ConnectTimeout: 10 * time.Second})
}

// While one address leads to a standby, new connections to it are refused, and the pool keeps those that lead to the primary.
func TestReadWrite_Failover(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	gate := pgtest.NewGate(t, servers.Primary.URL)
	core := impatient(t, gate.URL)
	known := pgtest.LoadRegistry(t, core)
	gate.SetTarget(t, servers.Primary.URL) // it closes the connections
	gate.Divert(t, servers.Replica.URL, 5)
	asynctest.Eventually(t, "the pool leads to the primary", func() bool { return writes(t, core, known) == 40 })

	gate.SetTarget(t, servers.Replica.URL)
	if written := writes(t, core, known); written > 0 {
		t.Errorf("a standby took %d writes", written)
	}
	if err := core.CheckReadWrite(t.Context()); !errors.Is(err, postgres.ErrStandby) || !postgres.Unavailable(err) {
		t.Errorf("ready: %v", err)
	}
	pgtest.Exec(t, pgtest.OpenAny(t, servers.Replica.URL), `SELECT pg_promote()`)
	asynctest.Eventually(t, "it writes again", func() bool { return writes(t, core, known) == 40 })
	if err := core.CheckReadWrite(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
}

// Behind a pooler a connection outlives the server that it was made to.
func TestReadWrite_FailoverBehindPgBouncer(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	gate := pgtest.NewGate(t, servers.Primary.URL)
	core := impatient(t, pgtest.Pooler(t, gate.URL, "pool_mode = transaction", "server_login_retry = 1", pgtest.IgnoredParameters))
	known := pgtest.LoadRegistry(t, core)
	asynctest.Eventually(t, "the pool is open", func() bool { return writes(t, core, known) == 40 })
	for range 3 {
		gate.SetTarget(t, servers.Replica.URL)
		asynctest.Eventually(t, "no connection is kept", func() bool {
			writes(t, core, known)
			return errors.Is(core.CheckReadWrite(t.Context()), postgres.ErrStandby) && postgres.OpenConnections(core.DB) == 0
		})
		gate.SetTarget(t, servers.Primary.URL)
		asynctest.Eventually(t, "it writes again", func() bool { return writes(t, core, known) == 40 })
	}
}

// A primary that takes no writes is one that does not answer, until it takes them again.
func TestReadWrite_ReadOnlyServer(t *testing.T) {
	t.Parallel()
	server := pgtest.NewReplicated(t).Primary
	core := impatient(t, server.URL)
	known := pgtest.LoadRegistry(t, core)
	operator := pgtest.OpenAny(t, server.URL)
	set := func(value string) {
		pgtest.Exec(t, operator, `ALTER SYSTEM SET default_transaction_read_only = `+value)
		pgtest.Exec(t, operator, `SELECT pg_reload_conf()`)
	}
	set("on")
	asynctest.Eventually(t, "operators are told", func() bool {
		writes(t, core, known)
		return errors.Is(core.CheckReadWrite(t.Context()), postgres.ErrReadOnly)
	})
	asynctest.Eventually(t, "nothing is written", func() bool { return writes(t, core, known) == 0 && postgres.OpenConnections(core.DB) == 0 })
	set("off")
	asynctest.Eventually(t, "it writes again", func() bool { return writes(t, core, known) == 40 })
}

// A server that takes no writes is asked again after pauses, however many statements want a connection, and works as soon as it takes them.
func TestReadWrite_ConnectionsBounded(t *testing.T) {
	t.Parallel()
	for mode, dials := range map[string]int{
		"disable": 1,
		"prefer":  2, // with TLS, which this server refuses, and without
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			testConnectionsBounded(t, mode, dials)
		})
	}
}

func testConnectionsBounded(t *testing.T, mode string, dials int) {
	t.Helper()
	const many = 500
	url := pgtest.Database(t)
	gate, operator := pgtest.NewGate(t, url), pgtest.OpenAny(t, url+"&default_transaction_read_only=off")
	core := impatient(t, strings.Replace(gate.URL, "sslmode=disable", "sslmode="+mode, 1))
	for range 2 { // the second time it has been writable since
		pgtest.Exec(t, operator, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
		gate.SetTarget(t, url) // it closes the connections
		asynctest.Eventually(t, "no connection is kept", func() bool {
			return errors.Is(core.CheckReadWrite(t.Context()), postgres.ErrReadOnly) && postgres.OpenConnections(core.DB) == 0
		})
		before, began := gate.Passed(), time.Now()
		for range many {
			conn, err := core.Acquire(t.Context())
			if err == nil {
				conn.Release()
			}
			if !errors.Is(err, postgres.ErrReadOnly) || !postgres.Unavailable(err) {
				t.Fatalf("a connection to a server that is read-only: %v", err)
			}
		}
		took := time.Since(began)
		// The first pause is 50 ms or more, and each later one is longer.
		if asked := gate.Passed() - before; asked > dials*(1+int(took/(50*time.Millisecond))) {
			t.Errorf("%d statements made %d connections in %s", many, asked, took)
		}
		pgtest.Exec(t, operator, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`)
		before = gate.Passed()
		asynctest.Eventually(t, "it writes again", func() bool { return core.CheckReadWrite(t.Context()) == nil })
		if asked := gate.Passed() - before; asked > dials {
			t.Errorf("%d connections were made until the server was found to take writes, want %d", asked, dials)
		}
	}
}

// The hosts of a URL are tried until one takes writes, unless the URL says which servers are meant.
func TestOpen_SeveralHosts(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	host := func(server string) string {
		through, err := url.Parse(pgtest.NewGate(t, server).URL)
		if err != nil {
			t.Fatal(err)
		}
		return through.Host
	}
	standby, primary := host(servers.Replica.URL), host(servers.Primary.URL)
	for hosts, want := range map[string]error{
		standby + "," + primary: nil, primary + "," + standby: nil, standby: postgres.ErrStandby,
	} {
		for _, mode := range []string{"disable", "prefer"} {
			address := fmt.Sprintf("postgres://intents@%s/intents?sslmode=%s", hosts, mode)
			if err := pgtest.Open(t, address).CheckReadWrite(t.Context()); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", address, err, want)
			}
			if err := pgtest.Open(t, address+"&target_session_attrs=any").CheckMigrated(t.Context()); err != nil {
				t.Errorf("any of %s: %v", address, err)
			}
		}
	}
	if err := pgtest.Open(t, fmt.Sprintf("postgres://intents@%s/intents?sslmode=disable", standby)).CheckMigrated(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "the server is a standby") {
		t.Errorf("start on a standby: %v", err)
	}
}
