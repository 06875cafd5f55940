package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/embedded"
)

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
