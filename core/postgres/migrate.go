package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/migrate"
)

//go:embed migrations/*.sql
var embeddedMigrations embed.FS

// migrationLock is the advisory lock that the migrating process has. The number is arbitrary.
const migrationLock = 7_403_118_224

// lockPollEvery is how often a waiting process tries to get that lock.
const lockPollEvery = 100 * time.Millisecond

// ErrUnmigrated is returned by CheckMigrated for a database that lacks a migration of this version.
var ErrUnmigrated = errors.New("the database is not migrated; run `core migrate`, or serve with CORE_MIGRATE_ON_START=true")

// ErrEncoding is returned for a database whose encoding lacks most of the characters that clients may send.
var ErrEncoding = errors.New("the encoding of the database is not UTF8, and cannot be changed; make another one with " +
	"CREATE DATABASE intents ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")

// requireUTF8 returns ErrEncoding for another encoding.
func requireUTF8(encoding string) error {
	if encoding != "UTF8" {
		return fmt.Errorf("%w; it is %s", ErrEncoding, encoding)
	}
	return nil
}

var errLockLost = errors.New("the lock on the schema was lost together with its connection; nothing was changed, migrate again")

// Migrate applies the missing migrations of this version and returns their names. Any number of processes may call it
// concurrently: one migrates, and the others wait and find nothing to do. A killed process releases the lock and leaves every
// migration either applied and recorded or neither. It returns ErrPooled for a connection through a pooler, and ErrEncoding for a database
// that is not in UTF-8.
func (d *DB) Migrate(ctx context.Context) (applied []string, err error) {
	err = d.withMigrator(ctx, func(migrator *migrate.Migrator) error {
		group, err := migrator.Migrate(ctx)
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		for _, m := range group.Migrations {
			applied = append(applied, m.Name+"_"+m.Comment)
		}
		return nil
	})
	return applied, err
}

// Rollback reverts the newest group of migrations.
func (d *DB) Rollback(ctx context.Context) error {
	return d.withMigrator(ctx, func(migrator *migrate.Migrator) error {
		if _, err := migrator.Rollback(ctx); err != nil {
			return fmt.Errorf("roll the last migrations back: %w", err)
		}
		return nil
	})
}

// withMigrator calls work with a migrator that holds the advisory lock. The migrator has its own connection, on which no time limit
// ends a long migration. The lock belongs to the connection's session, so it returns ErrPooled for a connection through a pooler.
func (d *DB) withMigrator(ctx context.Context, work func(*migrate.Migrator) error) (err error) {
	var options []stdlib.OptionOpenDB
	if !namesTarget(d.migration) {
		options = append(options, stdlib.OptionBeforeConnect(newReadOnlyServers().beforeConnect))
	}
	pool := stdlib.OpenDB(*d.migration, options...)
	pool.SetMaxOpenConns(1)
	db := bun.NewDB(pool, pgdialect.New())
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := requireDirectConnection(ctx, pool); err != nil {
		return err
	}
	var encoding string
	if err := db.QueryRowContext(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return fmt.Errorf("read the encoding of the database: %w", err)
	}
	if err := requireUTF8(encoding); err != nil {
		return err
	}
	if err := lockSchema(ctx, db); err != nil {
		return fmt.Errorf("lock the schema: %w", err)
	}
	migrator, err := d.newMigrator(db)
	if err != nil {
		return err
	}
	if err := migrator.Init(ctx); err != nil {
		return fmt.Errorf("prepare the migrations table: %w", err)
	}
	return work(migrator)
}

// lockSchema polls for the advisory lock. It must not wait inside pg_advisory_lock: that holds a snapshot, and CREATE INDEX
// CONCURRENTLY, which a migration may run, waits for all snapshots.
func lockSchema(ctx context.Context, db *bun.DB) error {
	ticker := time.NewTicker(lockPollEvery)
	defer ticker.Stop()
	for {
		var locked bool
		if err := db.QueryRowContext(ctx, "SELECT pg_try_advisory_lock(?)", migrationLock).Scan(&locked); err != nil || locked {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// CheckMigrated returns ErrUnmigrated if this version has a migration that the database lacks, and ErrBackslashes or ErrEncoding for
// a database that core must not write to. A newer database is accepted: migrations keep the previous version working.
func (d *DB) CheckMigrated(ctx context.Context) error {
	var table sql.NullString
	var strings, encoding string
	err := d.NewRaw("SELECT to_regclass('bun_migrations')::text, current_setting(?), current_setting('server_encoding')", standardStrings).
		Scan(ctx, &table, &strings, &encoding)
	if err != nil {
		return fmt.Errorf("look for the migrations table: %w", withPoolerHint(err))
	}
	if strings != "on" { // a pooler may report the setting of another server connection
		return fmt.Errorf("%w; a statement finds it %q", ErrBackslashes, strings)
	}
	if err := requireUTF8(encoding); err != nil {
		return err
	}
	if !table.Valid {
		return ErrUnmigrated
	}
	migrator, err := d.newMigrator(d.DB)
	if err != nil {
		return err
	}
	migrations, err := migrator.MigrationsWithStatus(ctx)
	if err != nil {
		return fmt.Errorf("read the applied migrations: %w", err)
	}
	if len(migrations.Unapplied()) > 0 {
		return ErrUnmigrated
	}
	return nil
}

func (d *DB) newMigrator(db *bun.DB) (*migrate.Migrator, error) {
	migrations := migrate.NewMigrations()
	if err := migrations.Discover(d.migrationFiles); err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return migrate.NewMigrator(db, migrations,
		migrate.WithMarkAppliedOnSuccess(true), migrate.WithUpsert(true), migrate.AfterMigration(record)), nil
}

// record records a migration in its own transaction. The migrator would do so only after the commit; a process killed before that
// would leave a schema that can be migrated neither up nor down.
func record(ctx context.Context, conn bun.IConn, m *migrate.Migration) error {
	if err := requireSchemaLock(ctx, conn); err != nil {
		return err
	}
	if m.IsApplied() { // a rollback
		_, err := conn.ExecContext(ctx, "DELETE FROM bun_migrations WHERE name = ?", m.Name)
		return err
	}
	_, err := conn.ExecContext(ctx, "INSERT INTO bun_migrations (name, group_id) VALUES (?, ?)", m.Name, m.GroupID)
	return err
}

// requireSchemaLock returns errLockLost on another connection than the one that has the lock on the schema: the first connection
// was lost, and another process may be migrating.
func requireSchemaLock(ctx context.Context, conn bun.IConn) error {
	var locked bool
	err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
		AND granted AND classid::bigint << 32 | objid::bigint = ?)`, migrationLock).Scan(&locked)
	if err != nil {
		return fmt.Errorf("look for the lock on the schema: %w", err)
	}
	if !locked {
		return errLockLost
	}
	return nil
}
