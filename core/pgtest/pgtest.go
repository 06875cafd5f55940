// Package pgtest gives each test a database of its own on a real Postgres.
//
// The server is the one that TEST_DATABASE_URL names, whose user must be allowed to create databases and roles and whose own database
// is not written to, or a private one for the run of the test binary. Without a server a test fails and is never skipped. Databases
// are copies of one migrated template, and any number of test binaries may run at the same time.
package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/embedded"
)

// Main runs the tests of a package and then removes the databases and the server. TestMain calls it. The tests mostly wait for Postgres, so
// five run at a time, unless -parallel says otherwise.
func Main(m interface{ Run() int }) {
	_ = flag.Set("test.parallel", "5") // the command line is parsed later and overrides it
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// New opens a store on a migrated, empty database of the test's own.
func New(tb testing.TB) *rooms.Rooms {
	tb.Helper()
	return Open(tb, Database(tb))
}

// Database gives the test a migrated, empty database and returns its URL.
func Database(tb testing.TB) string {
	tb.Helper()
	s := serverFor(tb)
	d, err := s.acquireDatabase()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.releaseDatabase(d); err != nil {
			tb.Error(err)
		}
	})
	return s.urlOf(d.name)
}

// Unmigrated makes a database without any table for the test and returns its URL.
func Unmigrated(tb testing.TB) string {
	tb.Helper()
	s := serverFor(tb)
	name := s.nextName()
	if err := s.createEmpty(name); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.drop(name); err != nil {
			tb.Error(err)
		}
	})
	return s.urlOf(name)
}

// Open opens a store on a database and closes it with the test.
func Open(tb testing.TB, url string) *rooms.Rooms {
	tb.Helper()
	return OpenWith(tb, url, Patient())
}

// OpenImpatient is Open, but the store waits for a lock only as long as it does in production.
func OpenImpatient(tb testing.TB, url string) *rooms.Rooms {
	tb.Helper()
	o := Patient()
	o.LockTimeout = 0
	return OpenWith(tb, url, o)
}

// patience is the limit of a test's statements: a busy machine takes long, and only one that hangs must end before go test does.
const patience = 2 * time.Minute

// Patient are the options of Open, for tests that need one more.
func Patient() postgres.Options {
	return postgres.Options{
		MaxConnections: 16, StatementTimeout: patience, AcquireTimeout: patience, ConnectTimeout: patience, LockTimeout: patience,
	}
}

// OpenWith opens a store with options of the test's own and closes it with the test.
func OpenWith(tb testing.TB, url string, o postgres.Options) *rooms.Rooms {
	tb.Helper()
	if started.Load() { // an address of another server is dialed as usual
		o.Dial = serverFor(tb).sessions.dial
	}
	store, err := rooms.Open(url, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

func serverFor(tb testing.TB) *server {
	tb.Helper()
	s, err := shared()
	if err != nil {
		tb.Fatalf("a Postgres for the tests: %v", err)
	}
	return s
}

// server is the Postgres of this test binary. The names of its databases begin with the application_name of its connections, so
// that another binary recognizes the databases of a binary that was killed: no connection has their name.
type server struct {
	postgres  *embedded.Postgres
	base      *url.URL
	sessions  sessionCache
	admin     *sql.DB
	keepalive *sql.Conn // open while the binary runs
	name      string
	schema    string // the template's fingerprint
	copying   string // the option of CREATE DATABASE that copies the template at the least cost
	made      atomic.Int64

	mu    sync.Mutex
	spare []testDatabase
}

// timeout bounds one command.
const timeout = time.Minute

var errBadURL = errors.New("TEST_DATABASE_URL must look like postgres://user:password@host:5432/name")

var (
	started atomic.Bool
	shared  = sync.OnceValues(func() (*server, error) {
		started.Store(true)
		return start()
	})
)

func start() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*timeout)
	defer cancel()
	running, err := embedded.StartPostgres(ctx, embedded.PostgresConfig{URL: os.Getenv("TEST_DATABASE_URL"), Ephemeral: true})
	if err != nil {
		return nil, err
	}
	s := &server{postgres: running, name: fmt.Sprintf("intents_test_%08x", rand.Uint32())} //nolint:gosec // a name, not a secret
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) prepare(ctx context.Context) (err error) {
	if s.base, err = url.Parse(s.postgres.URL); err != nil {
		return errBadURL
	}
	config, err := pgx.ParseConfig(s.postgres.URL)
	if err != nil {
		return errBadURL
	}
	s.sessions.network, s.sessions.address = pgconn.NetworkAddress(config.Host, config.Port)
	config.RuntimeParams["application_name"] = s.name
	s.admin = stdlib.OpenDB(*config)
	if s.keepalive, err = s.admin.Conn(ctx); err != nil {
		return err
	}
	if err := s.sweep(ctx); err != nil {
		return fmt.Errorf("remove the databases of killed test runs: %w", err)
	}
	if err := s.createEmpty(s.template()); err != nil {
		return err
	}
	store, err := rooms.Open(s.urlOf(s.template()), postgres.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	if s.private() {
		// A private server flushes nothing, so files are cheaper to copy than pages to log. Postgres 14 does only that.
		if err := store.Pool().QueryRowContext(ctx, `SELECT CASE WHEN current_setting('server_version_num')::int >= 150000
			THEN ' STRATEGY file_copy' ELSE '' END`).Scan(&s.copying); err != nil {
			return err
		}
	}
	return store.Pool().QueryRowContext(ctx, fingerprint).Scan(&s.schema)
}

// sweep drops the databases of binaries that were killed.
func (s *server) sweep(ctx context.Context) error {
	rows, err := s.admin.QueryContext(ctx, `SELECT datname FROM pg_database
		WHERE datname ~ '^intents_test_[0-9a-f]{8}_' AND NOT EXISTS (
			SELECT FROM pg_stat_activity WHERE application_name = substring(pg_database.datname, '^intents_test_[0-9a-f]{8}')
		)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		if err := s.drop(name); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *server) template() string { return s.name + "_template" }

func (s *server) nextName() string {
	return fmt.Sprintf("%s_%d", s.name, s.made.Add(1))
}

// urlOf is the server's URL with another database.
func (s *server) urlOf(name string) string {
	target := *s.base
	target.Path = "/" + name
	return target.String()
}

func (s *server) createEmpty(name string) error {
	return s.command("CREATE DATABASE " + name + " TEMPLATE template0")
}

func (s *server) drop(name string) error {
	return s.command("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
}

func (s *server) command(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if _, err := s.admin.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// stop ends the server if a test has started it.
func stop() error {
	if !started.Load() {
		return nil
	}
	s, err := shared()
	if err != nil {
		return nil //nolint:nilerr // each test that wanted it has said so
	}
	if s.private() {
		return s.stop() // its databases end with it
	}
	for _, spare := range s.spare {
		err = errors.Join(err, s.dropDatabase(spare))
	}
	return errors.Join(err, s.drop(s.template()), s.stop())
}

func (s *server) private() bool { return s.postgres.PID() != 0 }

func (s *server) stop() error {
	err := s.sessions.close()
	if s.keepalive != nil {
		err = errors.Join(err, s.keepalive.Close())
	}
	if s.admin != nil {
		err = errors.Join(err, s.admin.Close())
	}
	return errors.Join(err, s.postgres.Stop())
}

// Creating a database takes 50 ms or more and emptying one 6 ms, so a database that a test has finished with is emptied for the next
// test, unless the test has changed its schema.

// testDatabase is one of the server's, with a connection to empty it that stays open: a new one would first read the catalog.
type testDatabase struct {
	name string
	db   *sql.DB
}

// acquireDatabase returns an empty, migrated database.
func (s *server) acquireDatabase() (d testDatabase, err error) {
	s.mu.Lock()
	if last := len(s.spare) - 1; last >= 0 {
		d, s.spare = s.spare[last], s.spare[:last]
	}
	s.mu.Unlock()
	if d.db != nil {
		return d, nil
	}
	d.name = s.nextName()
	if err = s.command("CREATE DATABASE " + d.name + " TEMPLATE " + s.template() + s.copying); err == nil {
		d.db, err = sql.Open("pgx", s.urlOf(d.name))
	}
	return d, err
}

// releaseDatabase returns the database of a test that has closed its stores to the spare ones.
func (s *server) releaseDatabase(d testDatabase) error {
	if clean, err := s.empty(d.db); err != nil || !clean {
		return s.dropDatabase(d) // its error says so if the server is at fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, d)
	return nil
}

func (s *server) dropDatabase(d testDatabase) error {
	return errors.Join(d.db.Close(), s.drop(d.name))
}

// fingerprint is a hash of the names of the tables, columns, indexes, triggers and functions, and of the recorded migrations.
const fingerprint = `SELECT md5(string_agg(line, ',' ORDER BY line)) FROM (
	SELECT attrelid::regclass || '.' || attname AS line FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
	WHERE relnamespace = 'public'::regnamespace AND NOT attisdropped
	UNION ALL SELECT tgrelid::regclass || ' ' || tgname FROM pg_trigger WHERE NOT tgisinternal
	UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
	UNION ALL SELECT name FROM bun_migrations
) AS schema`

// emptying deletes all rows but the registry's version and the state of the feed, which are as after a migration. A table without a page has
// no row.
const emptying = `DO $$ DECLARE name text; BEGIN
	SET LOCAL lock_timeout = '5s';
	SET LOCAL session_replication_role = replica;
	FOR name IN SELECT relname FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
			AND relname NOT LIKE 'bun\_%' AND relname NOT IN ('registry_version', 'feed_state')
	LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
	UPDATE registry_version SET version = 1;
	UPDATE feed_state SET last_position = 0, unread = DEFAULT, checked_id = NULL, checked_xid = NULL, cluster = NULL;
END $$`

func (s *server) empty(db *sql.DB) (clean bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var found string
	if err := db.QueryRowContext(ctx, fingerprint).Scan(&found); err != nil || found != s.schema {
		return false, err
	}
	_, err = db.ExecContext(ctx, emptying)
	return err == nil, err
}
