package pgtest

import (
	"context"
	"database/sql"
	"errors"
)

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
