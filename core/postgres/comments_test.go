package postgres_test

import (
	"os"
	"regexp"
	"testing"

	"intents.internal/core/pgtest"
)

// Whoever reads \d+ and \di+ sees what each table, column and index is for. Primary keys need no text.
func TestMigrations_Comments(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	if bare := pgtest.LookUp[string](t, store, `SELECT coalesce(string_agg(name, ', ' ORDER BY name), '') FROM (
		SELECT relname AS name FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND (relkind = 'r' OR relkind = 'i'
			AND NOT EXISTS (SELECT FROM pg_index WHERE indexrelid = oid AND indisprimary))
			AND obj_description(oid) IS NULL
		UNION ALL SELECT relname || '.' || attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped AND col_description(attrelid, attnum) IS NULL
	) AS described WHERE name NOT LIKE 'bun\_%'`); bare != "" {
		t.Errorf("no COMMENT: %s", bare)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	// A second description would fall behind the first.
	for _, table := range regexp.MustCompile(`(?m)^#+ (\S+)$`).FindAllSubmatch(readme, -1) {
		if pgtest.LookUp[bool](t, store, "SELECT to_regclass($1) IS NOT NULL", string(table[1])) {
			t.Errorf("README.md describes the table %s, which its COMMENT does", table[1])
		}
	}
}
