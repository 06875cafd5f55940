package retention_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/store"
	"intents.internal/core/store/pgtest"
	"intents.internal/core/store/retention"
)

// prunable has a row for each table that Prune removes rows of, by the statement that inserts it. ?0 stands for an account.
var prunable = map[string]string{
	"sessions":              `INSERT INTO sessions (id, account_id, token_hash, expires_at, created_at, updated_at, ip_address, user_agent) VALUES (gen_random_uuid(), ?0, sha256('s'), now() - interval '1 h', now(), now(), '', '')`,
	"nonces":                `INSERT INTO nonces (hash, expires_at) VALUES (sha256('n'), now() - interval '1 h')`,
	"reset_tokens":          `INSERT INTO reset_tokens (hash, account_id, expires_at) VALUES (sha256('r'), ?0, now() - interval '1 h')`,
	"link_tokens":           `INSERT INTO link_tokens (hash, account_id, purpose, email, expires_at) VALUES (sha256('l'), ?0, 'verify_email', 'a@example.com', now() - interval '1 h')`,
	"key_usage":             `INSERT INTO key_usage VALUES (?0, '2026-01-01', gen_random_uuid(), 1, 0, 0)`,
	"usage_reports":         `INSERT INTO usage_reports VALUES (gen_random_uuid(), '2026-01-01')`,
	"key_changes":           `INSERT INTO key_changes (hash, changed_at) VALUES (sha256('k'), '2026-01-01')`,
	"mails":                 `INSERT INTO mails (id, kind, recipient, created_at, next_attempt_at, attempts) VALUES (gen_random_uuid(), 'reset_password', 'a@example.com', '2026-01-01', '2026-01-01', 0)`,
	"disputed_transactions": `INSERT INTO disputed_transactions VALUES (?0, gen_random_uuid(), 'eip155:1', sha256('d'), 'send', sha256('d'), '2026-01-01', '2026-01-01')`,
	"webhook_requests":      `INSERT INTO webhook_requests VALUES (?0, 'test', 'key', sha256('w'), gen_random_uuid(), '', '2026-01-01')`,
	"audit_log": `INSERT INTO audit_log (id, account_id, occurred_at, actor, action, key_name, detail, ip_address, user_agent)
		VALUES ('01000000-0000-7000-8000-000000000000', ?0, '2020-01-01', 'owner', 'signed_in', '', '', '', '')`,
	"feed": `INSERT INTO feed (position, account_id, environment, type, occurred_at, data) VALUES (1, ?0, 'test', 'webhook.disabled', now(), '{}')`,
	"deliveries": `INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, created_at, updated_at)
		VALUES (gen_random_uuid(), gen_random_uuid(), 1, 'webhook.test', 'failed', 1, '2026-01-01', '2026-01-01')`,
	"screening_hits":     `INSERT INTO screening_hits VALUES (gen_random_uuid(), ?0, NULL, 'test', 'create', 'source', '0x', '', NULL, '', '2020-01-01')`,
	"screening_accepted": `INSERT INTO screening_accepted VALUES (sha256('s'), '2026-01-01')`,
	"transfers": `INSERT INTO transfers SELECT made.* FROM transfers t, jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256('t'),
		'updated_at', '2020-01-01', 'status', 'expired')) AS made WHERE t.account_id = ?0`,
}

// A step that fails for ever ends no other, and its error is returned with what the others removed.
func TestPrune_FailingStep(t *testing.T) {
	t.Parallel()
	for failing := range prunable {
		t.Run(failing, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			insertPrunable(t, db)
			pgtest.Exec(t, db, `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken' USING ERRCODE = 'XX001'; END $$`)
			pgtest.Exec(t, db, fmt.Sprintf(`CREATE TRIGGER broken BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION broken()`, failing))
			keep := retention.Retention{Events: retention.MinEventsRetention, Audit: retention.MinAuditRetention, Transfers: retention.MinTransfersRetention}
			removed, err := db.Retention.Prune(t.Context(), pgtest.Now(), keep)
			if err == nil || !strings.Contains(err.Error(), "prune "+failing+": ") {
				t.Errorf("the error is %v", err)
			}
			for table := range prunable {
				if want := table != failing; (removed[table] == 1) != want {
					t.Errorf("%s: %d rows removed", table, removed[table])
				}
			}
		})
	}
}

// Two steps that fail are both told.
func TestPrune_JoinsErrors(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	insertPrunable(t, db)
	pgtest.Exec(t, db, `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken'; END $$`)
	for _, table := range []string{"nonces", "mails"} {
		pgtest.Exec(t, db, fmt.Sprintf(`CREATE TRIGGER broken BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION broken()`, table))
	}
	_, err := db.Retention.Prune(t.Context(), pgtest.Now(), retention.Retention{})
	if err == nil || !strings.Contains(err.Error(), "prune nonces: ") || !strings.Contains(err.Error(), "prune mails: ") {
		t.Errorf("the error is %v", err)
	}
}

// An endpoint or an account whose rows cannot be removed keeps no other from losing its own.
func TestPrune_FailingItem(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	first := uuid.UUID{1}
	for n := range byte(3) {
		pgtest.Exec(t, db, `INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, created_at, updated_at)
			VALUES ($1, gen_random_uuid(), 1, 'webhook.test', 'failed', 1, now(), now())`, uuid.UUID{1 + n})
	}
	pgtest.Exec(t, db, `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken'; END $$`)
	pgtest.Exec(t, db, fmt.Sprintf(`CREATE TRIGGER broken BEFORE DELETE ON deliveries FOR EACH ROW WHEN (OLD.webhook_id = '%s') EXECUTE FUNCTION broken()`, first))
	removed, err := db.Retention.Prune(t.Context(), pgtest.Now(), retention.Retention{})
	if err == nil || removed["deliveries"] != 2 {
		t.Errorf("removed %v, %v", removed, err)
	}
}

func insertPrunable(t *testing.T, db *store.Rooms) {
	t.Helper()
	ann := pgtest.SignUp(t, db, "ann@example.com").ID
	pgtest.InsertTransfer(t, db, pgtest.LoadRegistry(t, db), ann, pgtest.TransferBody)
	for table, statement := range prunable {
		pgtest.Exec(t, db, strings.ReplaceAll(statement, "?0", "'"+ann.String()+"'"))
		if n := pgtest.LookUp[int](t, db, "SELECT count(*) FROM "+table); n == 0 {
			t.Fatalf("%s has no row", table)
		}
	}
	pgtest.Exec(t, db, `UPDATE feed_state SET last_position = 1`)
}
