package retention_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/retention"
	"intents.internal/core/rooms"
)

// prunable is a row that a step of Prune removes, by the statement that inserts it. ?0 stands for an account.
type prunable struct {
	table string
	// row is the condition that the row meets as old, and no other row of the table.
	row, insert string
}

// prunables has a row for each step of Prune.
var prunables = map[string]prunable{
	"sessions":           {"sessions", "true", `INSERT INTO sessions (id, account_id, token_hash, expires_at, created_at, updated_at, ip_address, user_agent) VALUES (gen_random_uuid(), ?0, sha256('s'), now() - interval '1 h', now(), now(), '', '')`},
	"nonces":             {"nonces", "true", `INSERT INTO nonces (hash, expires_at) VALUES (sha256('n'), now() - interval '1 h')`},
	"sign_in_challenges": {"sign_in_challenges", "true", `INSERT INTO sign_in_challenges (hash, challenge, expires_at) VALUES (sha256('c'), 'c', now() - interval '1 h')`},
	"reset_tokens":       {"reset_tokens", "true", `INSERT INTO reset_tokens (hash, account_id, expires_at) VALUES (sha256('r'), ?0, now() - interval '1 h')`},
	"link_tokens":        {"link_tokens", "true", `INSERT INTO link_tokens (hash, account_id, purpose, email, expires_at) VALUES (sha256('l'), ?0, 'verify_email', 'a@example.com', now() - interval '1 h')`},
	"invitations": {"invitations", "true", `INSERT INTO invitations (id, account_id, inviter_id, email, role, mailed, expires_at, created_at)
		VALUES (gen_random_uuid(), ?0, ?0, 'i@example.com', 'viewer', false, '2026-01-01', '2026-01-01')`},
	"disputed_transactions": {"disputed_transactions", "true", `INSERT INTO disputed_transactions (account_id, transfer_id, chain_id, hash, role,
		block_hash, disputed_since, compare_at)
		VALUES (?0, gen_random_uuid(), 'eip155:1', sha256('d'), 'send', sha256('d'), '2026-01-01', '2026-01-01')`},
	"webhook_requests": {"webhook_requests", "true", `INSERT INTO webhook_requests (account_id, environment, idempotency_key, fingerprint,
		webhook_id, response, expires_at)
		VALUES (?0, 'test', 'key', sha256('w'), gen_random_uuid(), '', '2026-01-01')`},
	"mails":       {"mails", "true", `INSERT INTO mails (id, kind, recipient, created_at, next_attempt_at, attempts) VALUES (gen_random_uuid(), 'reset_password', 'a@example.com', '2026-01-01', '2026-01-01', 0)`},
	"key_changes": {"key_changes", "old.changed_at < '2026-06-01'", `INSERT INTO key_changes (hash, changed_at) VALUES (sha256('k'), '2026-01-01')`},
	"key_usage": {"key_usage", "true", `INSERT INTO key_usage (account_id, minute, key_id, accepted, limited, refused)
		VALUES (?0, '2026-01-01', gen_random_uuid(), 1, 0, 0)`},
	"usage_reports": {"usage_reports", "true", `INSERT INTO usage_reports (id, received_at) VALUES (gen_random_uuid(), '2026-01-01')`},
	"accounts": {"accounts", "old.verification_required", `INSERT INTO accounts (id, name, email, password_hash, verification_required, created_at, updated_at)
		VALUES (gen_random_uuid(), 'Eve', 'eve@example.com', '', true, '2026-01-01', '2026-01-01')`},
	"api_keys": {"api_keys", "old.deleted_at IS NULL", `INSERT INTO api_keys (id, account_id, name, hash, start, environment, enabled, limit_requests, limit_period_seconds, limit_bucket, scopes, networks,
		rotated_at, expires_at, created_at, updated_at) VALUES (gen_random_uuid(), ?0, 'key', sha256('a'), 'sk_test_abcd', 'test', true, 50, 60, gen_random_uuid(), '{webhooks}', '{}',
		'2026-01-01', '2026-01-01', '2026-01-01', '2026-01-01')`},
	"audit_log": {"audit_log", "old.occurred_at < '2026-06-01'", `INSERT INTO audit_log (id, account_id, occurred_at, actor, action, key_name, detail, ip_address, user_agent)
		VALUES ('01000000-0000-7000-8000-000000000000', ?0, '2020-01-01', 'owner', 'signed_in', '', '', '', '')`},
	"transfers": {"transfers", "old.status = 'expired'", `INSERT INTO transfers SELECT made.* FROM transfers t, jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256('t'),
		'updated_at', '2020-01-01', 'status', 'expired')) AS made WHERE t.account_id = ?0`},
	"feed": {"feed", "old.position = 1", `INSERT INTO feed (position, account_id, environment, type, occurred_at, data) VALUES (1, ?0, 'test', 'webhook.disabled', now(), '{}')`},
	"deliveries": {"deliveries", "true", `INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, created_at, updated_at)
		VALUES (gen_random_uuid(), gen_random_uuid(), 1, 'webhook.test', 'failed', 1, '2026-01-01', '2026-01-01')`},
	"delivery_attempts": {"delivery_attempts", "true", `INSERT INTO delivery_attempts (webhook_id, event_id, ended_at, duration_ms) VALUES (gen_random_uuid(), gen_random_uuid(), '2026-01-01', 1)`},
	"unused quotes": {"quotes", "old.expires_at < '2026-06-01'", `INSERT INTO quotes SELECT made.* FROM quotes q, jsonb_populate_record(q, jsonb_build_object('id', gen_random_uuid(),
		'expires_at', '2026-01-01')) AS made WHERE q.account_id = ?0 AND q.transfer_id IS NULL AND q.expires_at > now()`},
	"quotes": {"quotes", "old.transfer_id IS NOT NULL", `INSERT INTO quotes SELECT made.* FROM quotes q, jsonb_populate_record(q, jsonb_build_object('id', gen_random_uuid(),
		'transfer_id', gen_random_uuid(), 'created_at', '2020-01-01')) AS made WHERE q.account_id = ?0 AND q.transfer_id IS NULL AND q.expires_at > now()`},
	"screening_hits": {"screening_hits", "true", `INSERT INTO screening_hits (id, account_id, key_id, environment, stage, side, address,
		list_label, intent_id, request_id, at)
		VALUES (gen_random_uuid(), ?0, NULL, 'test', 'create', 'source', '0x', '', NULL, '', '2020-01-01')`},
	"screening_accepted": {"screening_accepted", "true", `INSERT INTO screening_accepted (sha256, accepted_at) VALUES (sha256('s'), '2026-01-01')`},
}

// A step that fails for ever ends no other, whichever it is, and its error is returned.
func TestPrune_FailingStep(t *testing.T) {
	t.Parallel()
	for _, failing := range retention.PruneSteps() {
		t.Run(failing, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			insertPrunables(t, db)
			// The code is of the class after which a connection is closed.
			failStep(t, db, failing, "XX001")
			_, err := db.Retention.Prune(t.Context(), pgtest.Now(), shortest)
			if err == nil || !strings.Contains(err.Error(), "prune "+failing+": ") {
				t.Errorf("the error is %v", err)
			}
			for _, step := range retention.PruneSteps() {
				want := 0
				if step == failing {
					want = 1
				}
				if left := prunables[step].count(t, db); left != want {
					t.Errorf("%s: %d rows are left, want %d", step, left, want)
				}
			}
		})
	}
}

// All steps that fail are told.
func TestPrune_JoinsErrors(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	insertPrunables(t, db)
	for _, step := range retention.PruneSteps() {
		failStep(t, db, step, "P0001")
	}
	_, err := db.Retention.Prune(t.Context(), pgtest.Now(), shortest)
	for _, step := range retention.PruneSteps() {
		if err == nil || !strings.Contains(err.Error(), "prune "+step+": ") {
			t.Errorf("nothing of %s in %v", step, err)
		}
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

// shortest removes what may be removed.
var shortest = retention.Retention{Events: retention.MinEventsRetention, Audit: retention.MinAuditRetention, Transfers: retention.MinTransfersRetention}

// insertPrunables inserts the rows of all steps. A step without a row fails the test.
func insertPrunables(t *testing.T, db *rooms.Rooms) {
	t.Helper()
	ann := pgtest.SignUp(t, db, "ann@example.com").ID
	known := pgtest.LoadRegistry(t, db)
	pgtest.InsertTransfer(t, db, known, ann, pgtest.TransferBody)
	pgtest.InsertQuote(t, db, known, ann)
	for _, step := range retention.PruneSteps() {
		p, found := prunables[step]
		if !found {
			t.Fatalf("give prunables a row that the step %s removes", step)
		}
		pgtest.Exec(t, db, strings.ReplaceAll(p.insert, "?0", "'"+ann.String()+"'"))
	}
	for step, p := range prunables {
		if n := p.count(t, db); n != 1 {
			t.Fatalf("%d rows are those of the step %s, want 1", n, step)
		}
	}
	pgtest.Exec(t, db, `UPDATE feed_state SET last_position = 1`)
}

func (p prunable) count(t *testing.T, db *rooms.Rooms) int {
	t.Helper()
	return pgtest.LookUp[int](t, db, fmt.Sprintf("SELECT count(*) FROM %s AS old WHERE %s", p.table, p.row))
}

// failStep has a step fail at its row with an SQLSTATE.
func failStep(t *testing.T, db *rooms.Rooms, step, state string) {
	t.Helper()
	p, name := prunables[step], "broken_"+strings.ReplaceAll(step, " ", "_")
	pgtest.Exec(t, db, fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken' USING ERRCODE = '%s'; END $$`, name, state))
	pgtest.Exec(t, db, fmt.Sprintf(`CREATE TRIGGER %[1]s BEFORE UPDATE OR DELETE ON %[2]s FOR EACH ROW WHEN (%[3]s) EXECUTE FUNCTION %[1]s()`, name, p.table, p.row))
}
