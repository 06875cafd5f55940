// Package postgres opens core's database for the stores of the rooms: its pools, time limits, transactions, migrations, clock and
// replica.
//
// It contains no rows and no domain rules. The package of each room beside it has its tables and its queries.
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

// DB is the database: bun's pool with time limits. It is safe for concurrent use.
type DB struct {
	*bun.DB

	// LongLists bounds the long lists that are read at once.
	LongLists *ListSemaphore
	// Replica is nil if lists are read only from the primary.
	Replica *Replica
	// Metrics registers the metrics of the stores; nil for none.
	Metrics prometheus.Registerer

	// connector is below DB. pools are its connection pool and the replica's.
	connector *connector
	pools     []*pgxpool.Pool
	limits    timeLimits
	tracer    queryTracer
	traced    bool
	clock     clock
	turns     turns
	server    *serverMetrics
	// confirmations are the waits of Confirm.
	confirmations confirmations
	// beforeClose ends what still writes when the database is closed.
	beforeClose []func()
	// migration is the configuration of the connection that migrates.
	migration *pgx.ConnConfig
	// migrationFiles are the migrations of this version.
	migrationFiles fs.FS
}

// Options configure a database.
type Options struct {
	// MigrateURL is the address of Postgres itself for migrations, if the database's URL goes through a pooler. Empty for the
	// database's own URL.
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
	// ConnectTimeout is how long making a connection may take; 0 means 2 s.
	ConnectTimeout time.Duration
	// Dial opens the socket of a connection; nil for a net.Dialer.
	Dial pgconn.DialFunc
	// Traced adds queries to the traces of requests.
	Traced bool
	// Metrics registers the metrics of the database and the stores; nil for none.
	Metrics prometheus.Registerer
}

// Open prepares a pool for a Postgres URL, whose hosts are tried in turn until one takes writes. target_session_attrs in the URL, or
// PGTARGETSESSIONATTRS, says which servers are connected to instead. The pool connects on first use, so Open does not fail for a
// database that is down.
func Open(url string, o Options) (*DB, error) {
	o.MaxConnections = cmp.Or(o.MaxConnections, 16)
	o.StatementTimeout = cmp.Or(o.StatementTimeout, 5*time.Second)
	o.AcquireTimeout = cmp.Or(o.AcquireTimeout, 300*time.Millisecond)
	o.LockTimeout = cmp.Or(o.LockTimeout, 250*time.Millisecond)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 2*time.Second)
	d := &DB{
		LongLists: newListSemaphore(o.MaxConnections), turns: newTurns(), Metrics: o.Metrics, server: newServerMetrics(o.Metrics),
		limits: newTimeLimits(o.StatementTimeout, o.LockTimeout), traced: o.Traced, migrationFiles: embeddedMigrations,
	}
	config, err := d.connConfig(url, o)
	if err != nil {
		return nil, fmt.Errorf("the database URL %w", err)
	}
	if d.migration, err = d.connConfig(cmp.Or(o.MigrateURL, url), o); err != nil {
		return nil, fmt.Errorf("CORE_MIGRATE_DATABASE_URL %w", err)
	}
	for limit := range d.limits.settings {
		d.migration.RuntimeParams[limit] = "0" // a migration may take long; 0 is no limit, also where the role has one
	}
	if o.ReadURL != "" {
		standby, err := d.connConfig(o.ReadURL, o)
		if err != nil {
			return nil, fmt.Errorf("CORE_READ_DATABASE_URL %w", err)
		}
		replica, _, err := d.openPool("postgres_replica", standby, false, o)
		if err != nil {
			return nil, err
		}
		d.Replica = newReplica(replica, o.Metrics)
	}
	if d.DB, d.connector, err = d.openPool("postgres", config, true, o); err != nil {
		return nil, err
	}
	d.tracer = newQueryTracer(config)
	return d, nil
}

var errBadURL = errors.New("cannot be read; it looks like postgres://user:password@host:5432/name")

// connConfig is the configuration of every connection to a URL.
func (d *DB) connConfig(url string, o Options) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errBadURL // err may contain the password
	}
	// bun writes most values into the SQL text, so a cache of prepared statements would rarely hit, and prepared statements fail
	// behind a transaction pooler. Only the insert of intents is prepared, on direct connections.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnectTimeout = o.ConnectTimeout
	if o.Dial != nil {
		config.DialFunc = o.Dial
	}
	config.RuntimeParams["application_name"] = "intents-core"
	config.RuntimeParams["timezone"] = "UTC"
	config.RuntimeParams[standardStrings] = "on"
	config.ValidateConnect = requireStandardStrings(config.ValidateConnect)
	config.OnPgError = keepConnection(config.OnPgError)
	for setting, limit := range d.limits.settings {
		config.RuntimeParams[setting] = milliseconds(limit)
	}
	return config, nil
}

// BeforeClose has Close call a function first, for what is still to be written.
func (d *DB) BeforeClose(end func()) { d.beforeClose = append(d.beforeClose, end) }

// ClientTimeout is when core itself cancels a statement.
func (d *DB) ClientTimeout() time.Duration { return d.limits.clientTimeout }

// Close writes what waits for a commit and closes the pools.
func (d *DB) Close() error {
	for _, end := range d.beforeClose {
		end()
	}
	err := d.DB.Close()
	if d.Replica != nil {
		err = errors.Join(err, d.Replica.db.Close())
	}
	closePools(d.pools)
	return err
}

// Acquire borrows a connection without bun and database/sql, for statements whose values are read or written without reflection. The
// caller must release it.
func (d *DB) Acquire(ctx context.Context) (*pgxpool.Conn, error) {
	return acquire(ctx, d.connector, d.connector.pool.Acquire)
}

// Pool is the pool without bun.
func (d *DB) Pool() *sql.DB { return d.DB.DB }

// HasReplica reports whether lists may be read from a replica.
func (d *DB) HasReplica() bool { return d.Replica != nil }

// BrokenConstraint is the name of the constraint that err violates, empty for any other error.
func BrokenConstraint(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.ConstraintName
	}
	return ""
}
