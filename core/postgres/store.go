// Package postgres keeps what the service knows in Postgres, through bun.
//
// It owns the rows, the queries and the migrations and no rule of the domain: it is handed what was decided and writes
// it down. README.md beside this file describes the tables.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

// Store is the database. It is safe for concurrent use.
type Store struct {
	db        *bun.DB
	config    *pgx.ConnConfig
	writer    *transferWriter
	longLists *longLists
	metrics   *metrics
}

// Options bound what the store may ask of the database.
type Options struct {
	// MaxConnections is the size of the pool, 16 where it is 0.
	MaxConnections int
	// StatementTimeout ends a statement that runs longer, 5 s where it is 0.
	StatementTimeout time.Duration
	// Metrics is where the store's go; nil for nowhere.
	Metrics prometheus.Registerer
}

// Open prepares a pool for a Postgres URL. It connects when first used, so a database that is down shows then.
func Open(url string, o Options) (*Store, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL cannot be read; it looks like postgres://user:password@host:5432/name")
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = 16
	}
	if o.StatementTimeout == 0 {
		o.StatementTimeout = 5 * time.Second
	}
	// bun writes values into the SQL text, so a cache of prepared statements would never hit, and it breaks behind a
	// pooler that shares connections between transactions.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnectTimeout = 2 * time.Second
	config.RuntimeParams["application_name"] = "intents-core"
	config.RuntimeParams["timezone"] = "UTC"
	config.RuntimeParams["statement_timeout"] = milliseconds(o.StatementTimeout)
	config.RuntimeParams["lock_timeout"] = milliseconds(o.StatementTimeout / 2)
	config.RuntimeParams["idle_in_transaction_session_timeout"] = milliseconds(2 * o.StatementTimeout)
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(o.MaxConnections)
	pool.SetMaxIdleConns(o.MaxConnections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	db := bun.NewDB(pool, pgdialect.New())
	m := newMetrics(o.Metrics)
	return &Store{
		db: db, config: config, writer: newTransferWriter(db, m), longLists: newLongLists(o.MaxConnections), metrics: m,
	}, nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d", d.Milliseconds()) }

// Close writes the intents that still wait and closes the pool.
func (s *Store) Close() error {
	s.writer.close()
	return s.db.Close()
}

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.PingContext(ctx); err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	return nil
}

// Pool is the connection pool, for its metrics.
func (s *Store) Pool() *sql.DB { return s.db.DB }

// invalidText is the SQLSTATE of a value that cannot be read as its type.
const invalidText = "22P02"

// sqlState is the SQLSTATE of an error that Postgres gave, empty for any other.
func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// brokenConstraint is the name of the constraint that err says was broken, empty for any other error.
func brokenConstraint(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.ConstraintName
	}
	return ""
}
