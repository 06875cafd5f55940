package retention

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

// eraseBatch is how many rows one transaction changes.
const eraseBatch = 5_000

// erasures are the statements that erase an ended account, table by table. Each is repeated while it changes eraseBatch rows. ?0
// is the account and ?1 the batch size. Its webhooks ended with it. The account's own row is last, so that an interrupted erasure can be repeated by the
// e-mail address. Intents, their events, usage and hits of the screening list are kept, with the account's id as a pseudonym; the feed is deleted, because
// nobody can read it any more.
var erasures = []struct{ table, statement string }{
	{"sessions", "DELETE FROM sessions WHERE account_id = ?0"},
	{"reset_tokens", "DELETE FROM reset_tokens WHERE account_id = ?0"},
	{"link_tokens", "DELETE FROM link_tokens WHERE account_id = ?0"},
	// The address may belong to another account by now, which then owns these mails.
	{"invitations", `DELETE FROM invitations WHERE email = (SELECT email FROM accounts WHERE id = ?0)
		AND NOT EXISTS (SELECT FROM accounts WHERE email = invitations.email AND deleted_at IS NULL)`},
	{"mails", `DELETE FROM mails WHERE account_id = ?0 OR recipient = (SELECT email FROM accounts WHERE id = ?0)
		AND NOT EXISTS (SELECT FROM accounts WHERE email = mails.recipient AND deleted_at IS NULL)`},
	{"identities", "DELETE FROM identities WHERE account_id = ?0"},
	{"passkeys", "DELETE FROM passkeys WHERE person_id = ?0"},
	{"sign_in_challenges", "DELETE FROM sign_in_challenges WHERE person_id = ?0"},
	{"webhook_quotas", "DELETE FROM webhook_quotas WHERE account_id = ?0"},
	{"webhook_requests", "DELETE FROM webhook_requests WHERE account_id = ?0"},
	{"feed", `DELETE FROM feed WHERE position = ANY (ARRAY(
		SELECT position FROM feed WHERE account_id = ?0 ORDER BY environment, position LIMIT ?1))`},
	{"quotes", `DELETE FROM quotes WHERE account_id = ?0 AND id = ANY (ARRAY(SELECT id FROM quotes WHERE account_id = ?0 LIMIT ?1))`},
	{"api_keys", `UPDATE api_keys SET name = 'erased' WHERE account_id = ?0 AND name <> 'erased'`},
	// The log's trigger empties last_detail too.
	{"audit_log", `UPDATE audit_log SET key_name = '', detail = '', ip_address = '', user_agent = '' WHERE id = ANY (ARRAY(
		SELECT id FROM audit_log WHERE account_id = ?0 AND (key_name, detail, ip_address, user_agent) <> ('', '', '', '') LIMIT ?1))`},
	{"audit_log", `UPDATE audit_log SET ip_address = '', user_agent = '' WHERE id = ANY (ARRAY(
		SELECT id FROM audit_log WHERE person_id = ?0 AND (ip_address, user_agent) <> ('', '') LIMIT ?1))`},
	{"transfer_updates", `DELETE FROM transfer_updates WHERE account_id = ?0 AND (transfer_id, sequence) IN (
		SELECT transfer_id, sequence FROM transfer_updates WHERE account_id = ?0 LIMIT ?1)`},
	{"transfers", `UPDATE transfers SET reference = NULL WHERE account_id = ?0 AND id = ANY (ARRAY(
		SELECT id FROM transfers WHERE account_id = ?0 AND reference IS NOT NULL LIMIT ?1))`},
	{"transfers", `UPDATE transfers SET labels = NULL WHERE account_id = ?0 AND id = ANY (ARRAY(
		SELECT id FROM transfers WHERE account_id = ?0 AND labels IS NOT NULL LIMIT ?1))`},
	{"transfers", `UPDATE transfers SET idempotency_key = NULL WHERE account_id = ?0 AND id = ANY (ARRAY(
		SELECT id FROM transfers WHERE account_id = ?0 AND idempotency_key IS NOT NULL LIMIT ?1))`},
	{"batches", `UPDATE batches SET idempotency_key = id::text WHERE account_id = ?0 AND id = ANY (ARRAY(
		SELECT id FROM batches WHERE account_id = ?0 AND idempotency_key <> id::text LIMIT ?1))`},
}

const eraseAccount = `UPDATE accounts SET name = 'erased', email = id || '@erased.invalid', password_hash = '', webauthn_handle = NULL, origins = '{}',
	erased_at = ?1, updated_at = ?1
	WHERE id = ?0 AND erased_at IS NULL`

// EraseAccount removes the personal data of an ended account, and returns the number of changed rows of each table, none if
// everything was erased before. It returns account.ErrNotFound, or account.ErrNotEnded for an account that has not ended. An
// interrupted erasure can be repeated.
func (s *Store) EraseAccount(ctx context.Context, id uuid.UUID, now time.Time) (erased map[string]int64, err error) {
	var ended bool
	err = s.db.NewRaw("SELECT deleted_at IS NOT NULL FROM accounts WHERE id = ?", id).Scan(ctx, &ended)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, account.ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("read account %s: %w", id, err)
	case !ended:
		return nil, account.ErrNotEnded
	}
	erased = map[string]int64{}
	for _, e := range erasures {
		for changed := int64(eraseBatch); changed == eraseBatch; {
			if changed, err = postgres.RowsChanged(s.db.NewRaw(e.statement, id, eraseBatch).Exec(ctx)); err != nil {
				return erased, fmt.Errorf("erase %s of account %s: %w", e.table, id, err)
			}
			if changed > 0 {
				erased[e.table] += changed
			}
		}
	}
	changed, err := postgres.RowsChanged(s.db.NewRaw(eraseAccount, id, now).Exec(ctx))
	if err != nil {
		return erased, fmt.Errorf("erase account %s: %w", id, err)
	}
	if changed > 0 {
		erased["accounts"] = changed
	}
	return erased, nil
}
