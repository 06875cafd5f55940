package identities

import (
	"context"
	"fmt"

	"intents.internal/core/identity/account"
)

// noticePersons are the conditions for the persons who get a notice of each kind. ?0 is the account of the entry.
var noticePersons = map[account.Notice]string{
	account.NoticeToPerson: "person.id = ?0",
	account.NoticeToOwners: "person.id IN (SELECT person_id FROM members WHERE account_id = ?0 AND role = ?4)",
}

// queueNotices queues the mails about an entry to the addresses that persons have proven. Whoever is told is fixed here: an owner who is
// removed before the mail is sent gets it too.
func (tx Tx) queueNotices(ctx context.Context, e account.AuditEntry) error {
	persons, tells := noticePersons[e.Notice]
	if !tells {
		return nil
	}
	_, err := tx.db.NewRaw(`INSERT INTO mails (id, kind, recipient, account_id, audit_entry_id, attempts, next_attempt_at, created_at)
		SELECT gen_random_uuid(), ?1, person.email, ?0, ?2, 0, clock_timestamp(), clock_timestamp() FROM accounts AS person
		WHERE person.deleted_at IS NULL AND person.disabled_at IS NULL AND person.email_verified_at IS NOT NULL
			AND person.email NOT LIKE ?3 AND `+persons,
		e.AccountID, account.MailSecurityNotice, e.ID, "%.invalid", account.RoleOwner).Exec(ctx)
	if err != nil {
		return fmt.Errorf("queue notices of %s in account %s: %w", e.Action, e.AccountID, err)
	}
	return nil
}
