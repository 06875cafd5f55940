package postgres_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
)

// smallTables do not grow with every request: they can be read through, or have an index built, while everybody waits.
var smallTables = []string{"accounts", "api_keys", "chains", "tokens", "registry_version"}

// thing is a column, a constraint, an index or a table's file, by a name that begins with its table's.
type thing struct {
	Kind, Table, Name, Is string
}

// schemaThings are what the version before may rely on, or suffer from.
const schemaThings = `
	SELECT 'column' AS kind, relname AS "table", attname AS name, concat_ws(' ', format_type(atttypid, atttypmod),
		CASE WHEN attnotnull THEN 'required' END, CASE WHEN atthasdef OR attidentity <> '' THEN 'default' END) AS "is"
	FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
	WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
	UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, contype::text
	FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'x')
	UNION ALL SELECT 'index', indrelid::regclass::text, indexrelid::regclass::text, CASE WHEN indisunique THEN 'unique' ELSE '' END
	FROM pg_index JOIN pg_class ON pg_class.oid = indrelid WHERE relnamespace = 'public'::regnamespace
	UNION ALL SELECT 'file', relname, relname, relfilenode::text
	FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`

func thingsOf(t *testing.T, store *rooms.Rooms) map[thing]string {
	t.Helper()
	rows, err := store.Pool().QueryContext(t.Context(), schemaThings)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[thing]string{}
	for rows.Next() {
		var one thing
		if err := rows.Scan(&one.Kind, &one.Table, &one.Name, &one.Is); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(one.Table, "bun_") {
			all[thing{one.Kind, one.Table, one.Name, ""}] = one.Is
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// faults tells what in a change of the schema the version before would not survive, or wait for too long. An index that is
// built concurrently keeps nobody waiting.
func faults(before, after map[thing]string, concurrently bool) []string {
	var found []string
	fault := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	had := func(table string) bool { return before[thing{"file", table, table, ""}] != "" }
	for old, was := range before {
		is, still := after[old]
		switch old.Kind {
		case "column":
			if !still {
				fault("%s.%s is gone", old.Table, old.Name)
			} else if is != was && is != was+" default" {
				fault("%s.%s was %s and is %s", old.Table, old.Name, was, is)
			}
		case "index":
			if _, kept := after[thing{"file", old.Table, old.Table, ""}]; kept && !still {
				fault("%s has lost the index %s", old.Table, old.Name)
			}
		case "file":
			if still && is != was && !slices.Contains(smallTables, old.Table) {
				fault("%s is rewritten under a lock", old.Table)
			}
		}
	}
	for made, is := range after {
		if _, old := before[made]; old || !had(made.Table) {
			continue
		}
		switch made.Kind {
		case "column":
			if strings.Contains(is, "required") && !strings.Contains(is, "default") {
				fault("%s.%s is required and has no default", made.Table, made.Name)
			}
		case "constraint":
			fault("%s has a new %s %s", made.Table, map[string]string{"c": "CHECK", "f": "foreign key", "x": "exclusion"}[is], made.Name)
		case "index":
			if is == "unique" {
				fault("%s must be unique by %s", made.Table, made.Name)
			} else if !concurrently && !slices.Contains(smallTables, made.Table) {
				fault("%s cannot be written to while %s is built", made.Table, made.Name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// The previous version works while a migration runs and after it, as deploy/README.md promises. Each migration but the first
// runs on a real database, and the schema before it is compared with the schema after it.
func TestMigrations_PreviousVersion(t *testing.T) {
	t.Parallel()
	store := pgtest.Open(t, pgtest.Unmigrated(t))
	files, err := filepath.Glob("migrations/*.up.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migrations: %q, %v", files, err)
	}
	for n, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before := thingsOf(t, store)
		pgtest.Exec(t, store, string(text))
		if n == 0 {
			continue
		}
		for _, fault := range faults(before, thingsOf(t, store), !strings.HasSuffix(file, ".tx.up.sql")) {
			t.Errorf("%s: %s", file, fault)
		}
	}
}

// No migration breaks the rules above, so nothing else shows what they refuse.
func TestMigrations_Faults(t *testing.T) {
	t.Parallel()
	store := pgtest.Open(t, pgtest.Unmigrated(t))
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	cases := map[string][]string{
		`ALTER TABLE events ADD note text`:                                        nil,
		`ALTER TABLE events ADD mark bigint NOT NULL DEFAULT 0`:                   nil,
		`ALTER TABLE feed ALTER position SET DEFAULT 0`:                           nil,
		`CREATE TABLE fresh (id bigint PRIMARY KEY, at date NOT NULL)`:            nil,
		`CREATE INDEX fresh_name ON accounts (name)`:                              nil,
		`ALTER TABLE events DROP COLUMN hash CASCADE`:                             {"events.hash is gone"},
		`ALTER TABLE chains RENAME name TO title`:                                 {"chains.name is gone", "chains.title is required and has no default"},
		`DROP TABLE nonces`:                                                       {"nonces.expires_at is gone", "nonces.hash is gone"},
		`ALTER TABLE transfers ALTER origin_domain DROP DEFAULT`:                  {"transfers.origin_domain was bigint required default and is bigint required"},
		`ALTER TABLE usage_reports ADD core text NOT NULL`:                        {"usage_reports.core is required and has no default"},
		`ALTER TABLE transfers ALTER reference SET NOT NULL`:                      {"transfers.reference was text and is text required"},
		`ALTER TABLE key_usage ALTER accepted TYPE numeric`:                       {"key_usage is rewritten under a lock", "key_usage.accepted was bigint required and is numeric required"},
		`ALTER TABLE transfers ADD CONSTRAINT short CHECK (hash <> '') NOT VALID`: {"transfers has a new CHECK short"},
		`ALTER TABLE identities ADD FOREIGN KEY (subject) REFERENCES chains`:      {"identities has a new foreign key identities_subject_fkey"},
		`CREATE INDEX late ON transfers (created_at)`:                             {"transfers cannot be written to while late is built"},
		`DROP INDEX transfers_account_type`:                                       {"transfers has lost the index transfers_account_type"},
		`CREATE UNIQUE INDEX names ON tokens (symbol)`:                            {"tokens must be unique by names"},
	}
	for _, statement := range slices.Sorted(maps.Keys(cases)) {
		before := thingsOf(t, store)
		pgtest.Exec(t, store, statement)
		if diff := cmp.Diff(cases[statement], faults(before, thingsOf(t, store), false)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", statement, diff)
		}
	}
}
