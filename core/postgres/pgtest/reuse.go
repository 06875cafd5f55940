package pgtest

import (
	"context"
	"database/sql"
	"errors"
)

// Making a database takes a tenth of a second and emptying one a hundredth, so one that a test is done with is emptied
// for the next, unless the test has changed its schema.

// take gives an empty, migrated database.
func (s *server) take() (name string, err error) {
	s.mu.Lock()
	if last := len(s.spare) - 1; last >= 0 {
		name, s.spare = s.spare[last], s.spare[:last]
	}
	s.mu.Unlock()
	if name != "" {
		return name, nil
	}
	name = s.nextName()
	return name, s.command("CREATE DATABASE " + name + " TEMPLATE " + s.template())
}

// giveBack takes a database back from a test that has closed its stores.
func (s *server) giveBack(name string) error {
	if clean, err := s.empty(name); err != nil || !clean {
		return s.drop(name) // which tells what is wrong if that was the server's fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, name)
	return nil
}

// fingerprint tells schemas apart by the names of their tables, columns, indexes, triggers and functions, and by what
// the migrator has noted.
const fingerprint = `SELECT md5(string_agg(line, ',' ORDER BY line)) FROM (
	SELECT attrelid::regclass || '.' || attname AS line FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
	WHERE relnamespace = 'public'::regnamespace AND NOT attisdropped
	UNION ALL SELECT tgrelid::regclass || ' ' || tgname FROM pg_trigger WHERE NOT tgisinternal
	UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
	UNION ALL SELECT name FROM bun_migrations
) AS schema`

// emptying leaves what a migration leaves: no row but the registry's version.
const emptying = `DO $$ DECLARE name text; BEGIN
	SET LOCAL lock_timeout = '5s';
	SET LOCAL session_replication_role = replica;
	FOR name IN SELECT tablename FROM pg_tables
		WHERE schemaname = 'public' AND tablename NOT LIKE 'bun\_%' AND tablename <> 'registry_version'
	LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
	UPDATE registry_version SET version = 1;
END $$`

func (s *server) empty(name string) (clean bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	db, err := sql.Open("pgx", s.urlOf(name))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var found string
	if err := db.QueryRowContext(ctx, fingerprint).Scan(&found); err != nil || found != s.schema {
		return false, err
	}
	_, err = db.ExecContext(ctx, emptying)
	return err == nil, err
}
