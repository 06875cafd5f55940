package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/migrate"
)

// indexChange is the content of a migration outside a transaction: one index that is created or dropped while others write.
type indexChange struct {
	create bool
	index  string
	// unique, table and definition describe an index that is created. The definition is the text after the name of the table.
	unique, table, definition string
}

var (
	sqlComments = regexp.MustCompile(`(?m)^\s*--.*$`)
	createIndex = regexp.MustCompile(
		`^(?i)CREATE\s+(UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+IF\s+NOT\s+EXISTS\s+([a-z][a-z0-9_]*)\s+ON\s+([a-z][a-z0-9_]*)\s*(\([^;]*)$`)
	dropIndex = regexp.MustCompile(`^(?i)DROP\s+INDEX\s+CONCURRENTLY\s+IF\s+EXISTS\s+([a-z][a-z0-9_]*)$`)
)

var errIndexMigration = errors.New("a migration outside a transaction (.up.sql without .tx) holds one CREATE INDEX CONCURRENTLY IF NOT EXISTS " +
	"name ON table (…), its .down.sql one DROP INDEX CONCURRENTLY IF EXISTS of that name, or the other way round; everything else goes into .tx.up.sql")

const (
	// shortLockTimeout is how long writers may queue behind a statement that locks a partitioned table.
	shortLockTimeout = 100 * time.Millisecond
	// lockNotAvailable is the SQLSTATE of a lock that was not granted within lock_timeout.
	lockNotAvailable = "55P03"
)

// parseIndexChange reads the one statement of a file, without its schema.
func parseIndexChange(text string) (indexChange, error) {
	statement := strings.TrimSpace(sqlComments.ReplaceAllString(text, ""))
	statement = strings.TrimSpace(strings.TrimSuffix(statement, ";"))
	if m := createIndex.FindStringSubmatch(statement); m != nil {
		return indexChange{create: true, unique: m[1], index: m[2], table: m[3], definition: m[4]}, nil
	}
	if m := dropIndex.FindStringSubmatch(statement); m != nil {
		return indexChange{index: m[1]}, nil
	}
	return indexChange{}, errIndexMigration
}

// discoverMigrations reads the migrations of a file system. Pairs outside a transaction are run by indexChange instead of bun's
// runner, which cannot run again after a crash.
func discoverMigrations(files fs.FS) (*migrate.Migrations, error) {
	discovered, migrations := migrate.NewMigrations(), migrate.NewMigrations()
	if err := discovered.Discover(files); err != nil {
		return nil, err
	}
	for _, m := range discovered.Sorted() {
		base := "migrations/" + m.Name + "_" + m.Comment
		up, upErr := fs.ReadFile(files, base+".up.sql")
		down, downErr := fs.ReadFile(files, base+".down.sql")
		if errors.Is(upErr, fs.ErrNotExist) && errors.Is(downErr, fs.ErrNotExist) {
			migrations.Add(m)
			continue
		}
		if err := errors.Join(upErr, downErr); err != nil {
			return nil, err
		}
		upChange, err := parseIndexChange(string(up))
		if err != nil {
			return nil, fmt.Errorf("%s.up.sql: %w", base, err)
		}
		downChange, err := parseIndexChange(string(down))
		if err != nil || downChange.index != upChange.index || downChange.create == upChange.create {
			return nil, fmt.Errorf("%s.down.sql: %w", base, errIndexMigration)
		}
		m.Up, m.Down = upChange.migrate, downChange.migrate
		migrations.Add(m)
	}
	return migrations, nil
}

// migrate changes the index on the connection that has the lock on the schema and then records the migration. If the process is
// killed, the migration is not recorded, and the next process continues where it stopped.
func (c indexChange) migrate(ctx context.Context, migrator *migrate.Migrator, m *migrate.Migration) (err error) {
	conn, err := migrator.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := requireSchemaLock(ctx, conn); err != nil {
		return err
	}
	change := c.drop
	if c.create {
		change = c.build
	}
	if err := change(ctx, conn); err != nil {
		return fmt.Errorf("index %s: %w", c.index, err)
	}
	return record(ctx, conn, m)
}

// build creates the index without blocking writers. A valid index of that name is the result of an earlier run. An invalid one is
// what an interrupted build has left (pg_index.indisvalid), which Postgres neither uses nor repairs.
func (c indexChange) build(ctx context.Context, conn bun.Conn) error {
	var partitioned bool
	var valid sql.NullBool
	err := conn.QueryRowContext(ctx, `SELECT relkind = 'p', (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(?))
		FROM pg_class WHERE oid = to_regclass(?)`, c.index, c.table).Scan(&partitioned, &valid)
	if err != nil {
		return fmt.Errorf("look at table %s: %w", c.table, err)
	}
	if valid.Bool {
		return nil
	}
	if partitioned {
		return c.buildPartitioned(ctx, conn)
	}
	if valid.Valid {
		if err := c.drop(ctx, conn); err != nil {
			return fmt.Errorf("drop what an earlier build has left: %w", err)
		}
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf("CREATE %sINDEX CONCURRENTLY IF NOT EXISTS %s ON %s %s", c.unique, c.index, c.table, c.definition))
	return err
}

// buildPartitioned creates the index of a partitioned table, which Postgres does not do concurrently. Each partition gets an index,
// which is attached to an index of the parent that becomes valid with the last of them.
func (c indexChange) buildPartitioned(ctx context.Context, conn bun.Conn) error {
	var partitions string
	err := conn.QueryRowContext(ctx, `SELECT coalesce(string_agg(relid::regclass::text, ' ' ORDER BY relid), '')
		FROM pg_partition_tree(?) WHERE isleaf`, c.table).Scan(&partitions)
	if err != nil {
		return fmt.Errorf("list the partitions of %s: %w", c.table, err)
	}
	err = execWithShortLockTimeout(ctx, conn, fmt.Sprintf("CREATE %sINDEX IF NOT EXISTS %s ON ONLY %s %s", c.unique, c.index, c.table, c.definition))
	if err != nil {
		return err
	}
	for partition := range strings.FieldsSeq(partitions) {
		part := c
		part.table, part.index = partition, c.index+strings.TrimPrefix(partition, c.table)
		if err := part.build(ctx, conn); err != nil {
			return fmt.Errorf("partition %s: %w", partition, err)
		}
		if err := execWithShortLockTimeout(ctx, conn, fmt.Sprintf("ALTER INDEX %s ATTACH PARTITION %s", c.index, part.index)); err != nil {
			return err
		}
	}
	return nil
}

// execWithShortLockTimeout runs a statement that is quick once it has its lock. Writers queue behind the wait for the lock, so it
// ends after shortLockTimeout and is repeated until the lock is granted.
func execWithShortLockTimeout(ctx context.Context, conn bun.Conn, statement string) error {
	for {
		err := conn.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if err := (Tx{tx}).setLockTimeout(ctx, shortLockTimeout); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, statement)
			return err
		})
		if sqlState(err) != lockNotAvailable {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * shortLockTimeout):
		}
	}
}

// drop removes the index without blocking others. Postgres does not drop the index of a partitioned table concurrently.
func (c indexChange) drop(ctx context.Context, conn bun.Conn) error {
	var partitioned bool
	err := conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass(?) AND relkind = 'I')", c.index).Scan(&partitioned)
	if err != nil {
		return err
	}
	if partitioned {
		return execWithShortLockTimeout(ctx, conn, "DROP INDEX IF EXISTS "+c.index)
	}
	_, err = conn.ExecContext(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+c.index)
	return err
}
