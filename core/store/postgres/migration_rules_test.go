package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"intents.internal/core/store"
	"intents.internal/core/store/pgtest"
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

func thingsOf(t *testing.T, store *store.Rooms) map[thing]string {
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
			} else if is != was {
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
