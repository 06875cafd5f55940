package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/migrate"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrationLock is the advisory lock that one migrating process holds. The number is arbitrary.
const migrationLock = 7_403_118_224

// ErrUnmigrated is returned by CheckMigrated for a database that this version cannot work with yet.
var ErrUnmigrated = errors.New("the database is not migrated; run `core migrate`, or serve with CORE_MIGRATE_ON_START=true")

var errLockLost = errors.New("the lock on the schema was lost together with its connection; nothing was changed, migrate again")

// Migrate brings the schema up to this version and returns the names of the migrations it applied. Any number of
// processes may call it at once: one works, the others wait and find nothing to do. A process that is killed leaves the
// lock free and every migration either applied and recorded or neither. It returns ErrPooled where a pooler is in the way.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	err = s.migrating(ctx, func(migrator *migrate.Migrator) error {
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

// Rollback takes the newest group of migrations back.
func (s *Store) Rollback(ctx context.Context) error {
	return s.migrating(ctx, func(migrator *migrate.Migrator) error {
		if _, err := migrator.Rollback(ctx); err != nil {
			return fmt.Errorf("roll the last migrations back: %w", err)
		}
		return nil
	})
}

// migrating works under the advisory lock, on one connection of its own: the lock belongs to it and ends with it, and
// no time limit cuts a long migration short. None of that holds on a connection that a pooler shares out.
func (s *Store) migrating(ctx context.Context, work func(*migrate.Migrator) error) (err error) {
	config := s.migration.Copy()
	for limit := range s.limits.settings {
		config.RuntimeParams[limit] = "0"
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(1)
	db := bun.NewDB(pool, pgdialect.New())
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := refusePooler(ctx, pool, config); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "SELECT pg_advisory_lock(?)", migrationLock); err != nil {
		return fmt.Errorf("lock the schema: %w", err)
	}
	migrator, err := newMigrator(db)
	if err != nil {
		return err
	}
	if err := migrator.Init(ctx); err != nil {
		return fmt.Errorf("prepare the migrations table: %w", err)
	}
	return work(migrator)
}

// CheckMigrated returns ErrUnmigrated if this version knows a migration that the database has not seen. A database
// that is ahead is fine: migrations keep the previous version working.
func (s *Store) CheckMigrated(ctx context.Context) error {
	var table sql.NullString
	if err := s.db.NewRaw("SELECT to_regclass('bun_migrations')::text").Scan(ctx, &table); err != nil {
		return fmt.Errorf("look for the migrations table: %w", advise(err))
	}
	if !table.Valid {
		return ErrUnmigrated
	}
	migrator, err := newMigrator(s.db)
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

func newMigrator(db *bun.DB) (*migrate.Migrator, error) {
	migrations := migrate.NewMigrations()
	if err := migrations.Discover(migrationFiles); err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return migrate.NewMigrator(db, migrations,
		migrate.WithMarkAppliedOnSuccess(true), migrate.WithUpsert(true), migrate.AfterMigration(record)), nil
}

// record notes a migration in the transaction that makes it. The migrator does so too, but only after the commit: a
// process killed in between would leave a schema that can be migrated neither up nor down. A migration on another connection
// than the one that has the lock is refused: the first was lost on the way, and somebody else may be migrating.
func record(ctx context.Context, tx bun.IConn, m *migrate.Migration) (err error) {
	var locked bool
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
		AND granted AND classid::bigint << 32 | objid::bigint = ?)`, migrationLock).Scan(&locked)
	if err != nil {
		return fmt.Errorf("look for the lock on the schema: %w", err)
	}
	if !locked {
		return errLockLost
	}
	if m.IsApplied() { // it is being taken back
		_, err = tx.ExecContext(ctx, "DELETE FROM bun_migrations WHERE name = ?", m.Name)
	} else {
		_, err = tx.ExecContext(ctx, "INSERT INTO bun_migrations (name, group_id) VALUES (?, ?)", m.Name, m.GroupID)
	}
	return err
}
