package faults_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// The process that migrates is killed while Postgres builds an index, which goes on without it: the next one waits for that,
// finishes the schema, and leaves no index that is not valid.
func TestMigratorKilled(t *testing.T) {
	t.Parallel()
	server, err := embedded.StartPostgres(t.Context(), embedded.PostgresConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	db := &database{url: server.URL}
	migrate := embedded.Command{
		Name: "core migrate", Path: filepath.Join(shared.binaries, "core"), Args: []string{"migrate"},
		Env: append(os.Environ(), "CORE_DATABASE_URL="+db.url),
	}
	building := func() (is bool) {
		db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
			return conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE phase = 'waiting for old snapshots')`).Scan(&is)
		})
		return is
	}
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		// An index that is built concurrently waits for every older snapshot.
		reader, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			return err
		}
		if _, err := reader.Exec(ctx, `SELECT count(*) FROM pg_class`); err != nil {
			return err
		}
		migrator, err := embedded.StartProcess(migrate)
		if err != nil {
			return err
		}
		asynctest.Eventually(t, "an index is being built", building)
		migrator.Kill()
		if !building() {
			return errors.New("the index was built before the migrator was killed")
		}
		return reader.Rollback(ctx)
	})
	for _, round := range []string{"after the kill", "once more"} {
		if err := embedded.Run(t.Context(), migrate); err != nil {
			t.Fatalf("migrate %s: %v", round, err)
		}
	}
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		var invalid, recorded int
		err := conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_index WHERE NOT indisvalid), (SELECT count(*) FROM bun_migrations)`).Scan(&invalid, &recorded)
		files, _ := filepath.Glob(filepath.Join("..", "..", "core", "postgres", "migrations", "*.up.sql"))
		if invalid != 0 || recorded != len(files) || recorded == 0 {
			t.Errorf("%d indexes are not valid; %d of %d migrations are recorded", invalid, recorded, len(files))
		}
		return err
	})
}
