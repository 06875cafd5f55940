package access

import (
	"context"
	"fmt"

	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
)

// noticePersons are the conditions for the persons who get a notice of each kind. ?0 is the account of the entry.
var noticePersons = map[account.Notice]string{
	account.NoticeToPerson: "person.id = ?0",
	account.NoticeToOwners: "person.id IN (SELECT person_id FROM members WHERE account_id = ?0 AND role = ?2)",
}

// queueNotices queues the mails about an entry to the addresses that persons have proven. Whoever is told is fixed here: an owner who is
// removed before the mail is sent gets it too.
func (tx Tx) queueNotices(ctx context.Context, e account.AuditEntry) error {
	persons, tells := noticePersons[e.Notice]
	if !tells {
		return nil
	}
	var recipients []string
	err := tx.db.NewRaw(`SELECT person.email FROM accounts AS person
		WHERE person.deleted_at IS NULL AND person.disabled_at IS NULL AND person.email_verified_at IS NOT NULL
			AND person.email NOT LIKE ?1 AND `+persons+` ORDER BY person.id`, e.AccountID, "%.invalid", account.RoleOwner).Scan(ctx, &recipients)
	if err != nil {
		return fmt.Errorf("find who gets the notices of %s in account %s: %w", e.Action, e.AccountID, err)
	}
	for _, recipient := range recipients {
		d := mail.Draft{Kind: mail.KindSecurityNotice, Recipient: recipient, AccountID: e.AccountID, AuditEntryID: e.ID}
		if err := mail.Within(tx.db).Insert(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
