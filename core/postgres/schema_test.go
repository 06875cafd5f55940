package postgres_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/golden"
)

// The classes of constraints, by the SQLSTATEs of what they refuse.
const (
	check   = "23514 "
	unique  = "23505 "
	foreign = "23503 "
	appends = "23001 audit_log_append_only"
)

// swap makes a swap of the one transfer.
const swap = `UPDATE transfers SET type = 'swap', destination_token = 'other', origin_settler = 's', destination_settler = 's'`

// The constraints that carry a rule whoever writes the row. Those on the length of a text or the bounds of a number are what
// the domain tests; TestSchema_Recorded sees that they stay.
var constraints = []struct{ want, statement string }{
	// An address belongs to one account until that has ended.
	{unique + "accounts_email", `INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at)
		SELECT gen_random_uuid(), name, email, '', now(), now() FROM accounts`},
	{check + "accounts_email_check", `UPDATE accounts SET email = 'Owner@example.com'`},
	// Nobody signs in to a shared account by a password.
	{check + "accounts_shared", `UPDATE accounts SET shared = true`},
	// Data of an account is erased once it has ended.
	{check + "accounts_erased", `UPDATE accounts SET erased_at = now()`},
	// A person stays an owner of their own account.
	{check + "members_holder", `UPDATE members SET role = 'viewer'`},
	// A wallet has one spelling, and so one account.
	{check + "identities_wallet", `UPDATE identities SET issuer = 'eip155', subject = '0x' || repeat('A', 40)`},
	{check + "identities_smart_account", `UPDATE identities SET issuer = 'eip155:01', subject = '0x' || repeat('a', 40)`},
	// A key says its environment, and one that was replaced ends.
	{check + "api_keys_check", `UPDATE api_keys SET environment = 'live'`},
	{check + "api_keys_rotated", `UPDATE api_keys SET rotated_at = now()`},
	{check + "api_keys_scopes", `UPDATE api_keys SET scopes = '{}'`},
	{"22P02 ", `UPDATE api_keys SET networks = '{10.0.0.1/8}'`}, // by the type
	// The audit log is only ever added to.
	{appends, `UPDATE audit_log SET detail = 'nothing to see'`},
	{appends, `UPDATE audit_log SET repeats = repeats + 1`},                                        // of what is recorded each time
	{appends, `UPDATE audit_log SET key_name = '', detail = '', ip_address = '', user_agent = ''`}, // the account has not ended
	{appends, `DELETE FROM audit_log`},
	{appends, `TRUNCATE audit_log`},
	// A chain has one spelling and one environment, a token has a chain, a settlement has its settlers, and the registry has one version.
	{check + "chains_id_check", `UPDATE chains SET id = 'EIP155:1' WHERE id = 'eip155:421614'`},
	{check + "chains_environment_check", `UPDATE chains SET environment = 'both'`},
	{foreign + "tokens_chain_id_fkey", `DELETE FROM chains WHERE id = 'eip155:1'`},
	{"22023 ", `UPDATE chains SET settlements = '{}'`}, // by the trigger, for which it must be an array
	{"23502 ", `UPDATE chains SET settlements = '[{"inputSettler": "0x1"}]'`},
	{unique + "registry_version_pkey", `INSERT INTO registry_version (version) VALUES (2)`},
	{check + "registry_version_only_row_check", `INSERT INTO registry_version (only_row, version) VALUES (false, 2)`},
	// The two sides of an intent are what its type says, and its status what was sent.
	{check + "transfers_source_amount_check", swap + `, source_amount = 2::numeric ^ 256`},
	{"", swap + `, source_amount = 2::numeric ^ 256 - 1`},
	{"", `UPDATE transfers SET type = 'transfer', destination_token = source_token, source_amount = 5, origin_settler = '', destination_settler = ''`},
	{check + "transfers_transfer_keeps_amount", `UPDATE transfers SET destination_amount = 4`},
	{check + "transfers_bridge_crosses", `UPDATE transfers SET type = 'bridge', origin_settler = 's', destination_settler = 's'`},
	{check + "transfers_transfer_keeps_token", `UPDATE transfers SET destination_token = 'other'`},
	{check + "transfers_settled", `UPDATE transfers SET origin_settler = 's'`},
	{check + "transfers_transfer_ends_confirmed", `UPDATE transfers SET status = 'filled', hash = '0x1'`},
	{check + "transfers_sent", `UPDATE transfers SET status = 'submitted'`},
	{check + "transfers_failure", `UPDATE transfers SET status = 'failed', hash = '0x1'`},
	{check + "events_sent", `INSERT INTO events (account_id, transfer_id, to_status, occurred_at, sequence)
		VALUES (gen_random_uuid(), gen_random_uuid(), 'submitted', now(), 2)`},
	// An order and an idempotency key stand for one intent.
	{unique + "transfers_order_id_key", `INSERT INTO transfers SELECT made.* FROM transfers i, jsonb_populate_record(i,
		jsonb_build_object('id', gen_random_uuid(), 'idempotency_key', null)) AS made`},
	{unique + "transfers_idempotency", `INSERT INTO transfers SELECT made.* FROM transfers i, jsonb_populate_record(i,
		jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256('other'))) AS made`},
	{"", `INSERT INTO transfers SELECT made.* FROM transfers i, jsonb_populate_record(i,
		jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256('other'), 'account_id', gen_random_uuid())) AS made`},
	{"", `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, seen_at)
		VALUES (gen_random_uuid(), gen_random_uuid(), 'eip155:1', sha256('hash'), 'settle', 'replaced', true, now())`}, // of the previous version
	// An ended account frees its address.
	{"", `UPDATE accounts SET deleted_at = now()`},
	{"", `INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at)
		SELECT gen_random_uuid(), name, email, '', now(), now() FROM accounts`},
}

func TestSchema_Constraints(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := pgtest.SignUp(t, store, "owner@example.com")
	pgtest.InsertKey(t, store, owner.ID)
	pgtest.Exec(t, store, `INSERT INTO identities (issuer, subject, account_id, created_at) SELECT 'https://id.example.com', '7', id, now() FROM accounts`)
	intent := pgtest.NewIntent(t, known, owner.ID, pgtest.TransferBody)
	if _, err := store.Intents.InsertTransfer(t.Context(), intent, pgtest.Idempotent(t, "once", pgtest.TransferBody)); err != nil {
		t.Fatal(err)
	}
	for _, c := range constraints {
		_, err := store.Pool().ExecContext(t.Context(), c.statement)
		if got := pgtest.RefusedBy(err); err != nil && got != c.want || err == nil && c.want != "" {
			t.Errorf("%s\n\tgot  %s\n\twant %s", c.statement, got, c.want)
		}
	}
}

// What the schema enforces is recorded, constraint by constraint, so that no migration loosens it unseen.
func TestSchema_Recorded(t *testing.T) {
	t.Parallel()
	rows, err := pgtest.New(t).Pool().QueryContext(t.Context(), `
		SELECT conrelid::regclass::text AS "table", conname, pg_get_constraintdef(oid) FROM pg_constraint
		WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND contype IN ('c', 'f', 'p', 'u', 'x')
		UNION ALL
		SELECT indrelid::regclass::text, indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
		WHERE indisunique AND relnamespace = 'public'::regnamespace AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u'))
		UNION ALL
		SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger WHERE NOT tgisinternal`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	schema := map[string]map[string]string{}
	for rows.Next() {
		var table, name, definition string
		if err := rows.Scan(&table, &name, &definition); err != nil {
			t.Fatal(err)
		}
		if schema[table] == nil {
			schema[table] = map[string]string{}
		}
		schema[table][name] = definition
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	golden.JSON(t, "testdata/constraints.json", schema)
}

// The page about the database names the room that owns each table.
func TestReadme_Tables(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var owned []string
	for line := range strings.Lines(string(page)) {
		if _, tables, ok := strings.Cut(line, "` | `"); ok {
			owned = append(owned, regexp.MustCompile("[a-z_]{2,}").FindAllString(tables, -1)...)
		}
	}
	slices.Sort(owned)
	tables := pgtest.LookUp[string](t, pgtest.New(t), `SELECT string_agg(tablename, ' ' ORDER BY tablename COLLATE "C") FROM pg_tables
		WHERE schemaname = 'public' AND tablename NOT LIKE 'bun\_%'`)
	if diff := cmp.Diff(strings.Fields(tables), owned); diff != "" {
		t.Errorf("tables of the database, and of the page:\n%s", diff)
	}
}
