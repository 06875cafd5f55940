// Package postgres stores the data of core in Postgres, through bun.
//
// It owns the rows, the queries and the migrations and contains no domain rules. README.md in this directory describes the
// tables.
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/uptrace/bun"
)

// Store is the database. It is safe for concurrent use.
type Store struct {
	db *bun.DB
	// pools are the connection pools below db and the replica's.
	pools  []*pgxpool.Pool
	limits timeLimits
	traced bool
	writer *transferWriter
	// listSemaphore bounds the long lists that are read at once.
	listSemaphore *listSemaphore
	metrics       *metrics
	clock         clock
	// migration is the configuration of the connection that migrates.
	migration *pgx.ConnConfig
	// migrationFiles are the migrations of this version.
	migrationFiles fs.FS
	// replica is nil if lists are read only from the primary.
	replica *replica
}

// Options configure a store.
type Options struct {
	// MigrateURL is the address of Postgres itself for migrations, if the store's URL goes through a pooler. Empty for the
	// store's own URL.
	MigrateURL string
	// ReadURL is a streaming replica from which lists are read while it is up to date, which FollowReplica determines. Empty for
	// none.
	ReadURL string
	// MaxConnections is the size of the pool; 0 means 16.
	MaxConnections int
	// StatementTimeout cancels a statement that runs longer; 0 means 5 s.
	StatementTimeout time.Duration
	// AcquireTimeout is how long a statement waits for a connection while all are in use; 0 means 300 ms. LockTimeout is how long
	// it waits for a lock; 0 means 250 ms. A request may wait for a connection twice, for its key and for itself, and still gets
	// the error within a second.
	AcquireTimeout, LockTimeout time.Duration
	// Traced adds queries to the traces of requests.
	Traced bool
	// Metrics registers the store's metrics; nil for none.
	Metrics prometheus.Registerer
}

// Open prepares a pool for a Postgres URL. The pool connects on first use, so Open does not fail for a database that is down.
func Open(url string, o Options) (*Store, error) {
	o.MaxConnections = cmp.Or(o.MaxConnections, 16)
	o.StatementTimeout = cmp.Or(o.StatementTimeout, 5*time.Second)
	o.AcquireTimeout = cmp.Or(o.AcquireTimeout, 300*time.Millisecond)
	o.LockTimeout = cmp.Or(o.LockTimeout, 250*time.Millisecond)
	s := &Store{
		limits: newTimeLimits(o.StatementTimeout, o.LockTimeout), traced: o.Traced, listSemaphore: newListSemaphore(o.MaxConnections), metrics: newMetrics(o.Metrics),
		migrationFiles: embeddedMigrations,
	}
	config, err := s.connConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the database URL %w", err)
	}
	if s.migration, err = s.connConfig(cmp.Or(o.MigrateURL, url)); err != nil {
		return nil, fmt.Errorf("CORE_MIGRATE_DATABASE_URL %w", err)
	}
	for limit := range s.limits.settings {
		s.migration.RuntimeParams[limit] = "0" // a migration may take long; 0 is no limit, also where the role has one
	}
	if o.ReadURL != "" {
		standby, err := s.connConfig(o.ReadURL)
		if err != nil {
			return nil, fmt.Errorf("CORE_READ_DATABASE_URL %w", err)
		}
		db, err := s.openPool("postgres_replica", standby, o)
		if err != nil {
			return nil, err
		}
		s.replica = newReplica(db, o.Metrics)
	}
	if s.db, err = s.openPool("postgres", config, o); err != nil {
		return nil, err
	}
	s.writer = newTransferWriter(s.db, s.limits.clientTimeout, s.metrics, newQueryTracer(config))
	return s, nil
}

var errBadURL = errors.New("cannot be read; it looks like postgres://user:password@host:5432/name")

// connConfig is the configuration of every connection to a URL.
func (s *Store) connConfig(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errBadURL // err may contain the password
	}
	// bun writes most values into the SQL text, so a cache of prepared statements would rarely hit, and prepared statements fail
	// behind a transaction pooler. Only the insert of intents is prepared, on direct connections.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnectTimeout = 2 * time.Second
	config.RuntimeParams["application_name"] = "intents-core"
	config.RuntimeParams["timezone"] = "UTC"
	config.RuntimeParams[standardStrings] = "on"
	config.ValidateConnect = requireStandardStrings(config.ValidateConnect)
	for setting, limit := range s.limits.settings {
		config.RuntimeParams[setting] = milliseconds(limit)
	}
	return config, nil
}

// Close writes the intents that wait for a commit and closes the pools.
func (s *Store) Close() error {
	s.writer.close()
	err := s.db.Close()
	if s.replica != nil {
		err = errors.Join(err, s.replica.db.Close())
	}
	closePools(s.pools)
	return err
}

// Ping checks that the database responds.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.PingContext(ctx); err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	return nil
}

// Pool is the pool without bun.
func (s *Store) Pool() *sql.DB { return s.db.DB }

// HasReplica reports whether lists may be read from a replica.
func (s *Store) HasReplica() bool { return s.replica != nil }

// sqlState is the SQLSTATE of an error of Postgres, empty for any other error.
func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// brokenConstraint is the name of the constraint that err violates, empty for any other error.
func brokenConstraint(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.ConstraintName
	}
	return ""
}
