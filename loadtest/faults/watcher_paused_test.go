package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// A process that follows chains is paused past its leases, another one takes over, and the first continues where it was: it writes
// nothing in its old epoch and steps back, and every bridge ends by every step once.
func TestWatcherPaused(t *testing.T) {
	t.Parallel()
	pauses := 3
	if full() {
		pauses = 20
	}
	db := startDatabase(t, embedded.PostgresConfig{})
	b := newBridges(t, db, 31337, 2)
	recordWriters(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	working.Go(func() { b.mine(ctx) })
	rpcFile := writeRPCFile(t, b)
	leader := startWatcher(t, asRole(t, db, "process_0"), rpcFile)
	leader.awaitChains(t, b) // what is older than the first look is not read
	adding, enough := context.WithCancel(ctx)
	defer enough()
	added := make(chan error, 1)
	working.Go(func() { added <- b.addMany(adding, t, math.MaxInt, 25*time.Millisecond) })
	for n := range pauses {
		pass(t, 500*time.Millisecond)
		leader.signal(t, syscall.SIGSTOP)
		freeLeases(t, db) // instead of waiting for their end
		// A new process takes free leases at once. So the paused one continues before it is due to renew its own.
		other := startWatcher(t, asRole(t, db, fmt.Sprintf("process_%d", n+1)), rpcFile)
		other.awaitChains(t, b)
		leader.signal(t, syscall.SIGCONT)
		asynctest.Eventually(t, "the paused process steps back from both chains", func() bool {
			return leader.hasSteppedBack(b) && leader.known(t, b) == 0
		})
		if !other.follows(t, b) {
			t.Error("the process that took over does not follow the chains any more")
		}
		if err := leader.process.Stop(syscall.SIGTERM, 10*time.Second); err != nil {
			t.Error(err)
		}
		leader = other
	}
	enough()
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	b.mustEnd(t)
	epochs := mustHaveOneWriter(t, db)
	if want := len(b.chains) * (1 + pauses); epochs != want {
		t.Errorf("%d epochs of both chains, want %d", epochs, want)
	}
	t.Logf("%d bridges, %d pauses, %d epochs", len(b.made), pauses, epochs)
}

// freeLeases ends the leases of all chains. A process that is stopped within a transaction keeps its chain's row locked: until the idle
// transaction times out, or, where Postgres waits for it to read an answer, until an operator ends the backend.
func freeLeases(t *testing.T, db *database) {
	t.Helper()
	const free = "UPDATE watched_chains SET lease_until = '-infinity'"
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "SET lock_timeout = '2s'"); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, free)
		if refused := (*pgconn.PgError)(nil); !errors.As(err, &refused) || refused.Code != "55P03" { // lock_not_available
			return err
		}
		_, err = conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'")
		if err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "SET lock_timeout = 0"); err != nil {
			return err
		}
		_, err = conn.Exec(ctx, free)
		return err
	})
}

func (w *watcher) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := w.process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// hasSteppedBack reports whether the process has logged for each chain that another one follows it.
func (w *watcher) hasSteppedBack(b *bridges) bool {
	for _, id := range b.ids {
		if w.logged(`"another process follows the chain now"`, `"`+id.String()+`"`) == 0 {
			return false
		}
	}
	return true
}

// asRole is the database's URL for a role of its own, by which recordWriters tells processes apart.
func asRole(t *testing.T, db *database, role string) string {
	t.Helper()
	db.execute(t, "CREATE ROLE "+role+" LOGIN SUPERUSER")
	at, err := url.Parse(db.url)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(role)
	return at.String()
}

// recordWriters has the database record which role moves the cursor of which chain in which epoch of its lease. The cursor moves with all
// that a look found; rows of one chain's transactions may be written by the watcher of the other chain of their intent.
func recordWriters(t *testing.T, db *database) {
	t.Helper()
	db.execute(t, `CREATE TABLE writers (chain_id text, epoch bigint, writer name, PRIMARY KEY (chain_id, epoch, writer))`)
	db.execute(t, `CREATE FUNCTION record_writer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO writers VALUES (NEW.chain_id, NEW.epoch, session_user) ON CONFLICT DO NOTHING;
		RETURN NULL;
	END $$`)
	db.execute(t, `CREATE TRIGGER watched_chains_writer AFTER UPDATE OF head_number ON watched_chains
		FOR EACH ROW EXECUTE FUNCTION record_writer()`)
}

// mustHaveOneWriter wants that one process alone has written in each epoch of each chain, and returns the number of epochs.
func mustHaveOneWriter(t *testing.T, db *database) (epochs int) {
	t.Helper()
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT chain_id, epoch, array_agg(writer::text) FROM writers GROUP BY 1, 2 ORDER BY 1, 2")
		if err != nil {
			return err
		}
		var id string
		var epoch int64
		var writers []string
		_, err = pgx.ForEachRow(rows, []any{&id, &epoch, &writers}, func() error {
			epochs++
			if len(writers) > 1 {
				t.Errorf("%s has written in epoch %d of %s", strings.Join(writers, " and "), epoch, id)
			}
			return nil
		})
		return err
	})
	return epochs
}
