package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

type accountRow struct {
	bun.BaseModel `bun:"table:accounts,alias:accounts"`

	ID                 uuid.UUID  `bun:"id,pk"`
	Name               string     `bun:"name"`
	Email              string     `bun:"email"`
	PasswordHash       string     `bun:"password_hash"`
	Shared             bool       `bun:"shared"`
	LimitRequests      *int       `bun:"limit_requests"`
	LimitPeriodSeconds *int       `bun:"limit_period_seconds"`
	VerifiedAt         *time.Time `bun:"email_verified_at"`
	MustVerify         bool       `bun:"verification_required"`
	DisabledAt         *time.Time `bun:"disabled_at"`
	DeletedAt          *time.Time `bun:"deleted_at"`
	CreatedAt          time.Time  `bun:"created_at"`
	UpdatedAt          time.Time  `bun:"updated_at"`

	// Origins are read only where they are asked for.
	Origins []string `bun:"origins,array,scanonly"`
}

func (r accountRow) account() *account.Account {
	a := &account.Account{
		ID: r.ID, Name: r.Name, Email: r.Email, PasswordHash: r.PasswordHash, VerificationRequired: r.MustVerify,
		Shared: r.Shared, Limit: r.limit(),
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
	if r.VerifiedAt != nil {
		a.EmailVerifiedAt = r.VerifiedAt.UTC()
	}
	return a
}

// limit returns the limit that an operator set, or the default. The row may be nil: bun leaves a relation nil if all of its
// columns are null.
func (r *accountRow) limit() account.Limit {
	if r == nil || r.LimitRequests == nil || r.LimitPeriodSeconds == nil {
		return account.DefaultAccountLimit
	}
	return account.Limit{Requests: *r.LimitRequests, Period: time.Duration(*r.LimitPeriodSeconds) * time.Second}
}

// InsertAccount stores a new account. It returns account.ErrEmailTaken if another account has the address.
func (s *Store) InsertAccount(ctx context.Context, a *account.Account, entry account.AuditEntry) error {
	return s.InTx(ctx, access.TurnOfEmail(a.Email), func(ctx context.Context, tx Tx) error {
		if err := tx.insertAccount(ctx, a); err != nil {
			return err
		}
		return tx.Audit(ctx, entry)
	})
}

func (tx Tx) insertAccount(ctx context.Context, a *account.Account) error {
	row := accountRow{
		ID: a.ID, Name: a.Name, Email: a.Email, Shared: a.Shared, MustVerify: a.VerificationRequired, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
	}
	if a.EmailVerified() {
		row.VerifiedAt = &a.EmailVerifiedAt
	}
	_, err := tx.db.NewInsert().Model(&row).Value("password_hash", "$1").Returning("NULL").Conn(postgres.Bind(tx.db.Tx, a.PasswordHash)).Exec(ctx)
	if postgres.BrokenConstraint(err) == "accounts_email" {
		return account.ErrEmailTaken
	}
	if err != nil {
		return fmt.Errorf("insert account %s: %w", a.ID, err)
	}
	return nil
}

// AccountByEmail finds the account that may sign in with an address, or returns account.ErrNotFound. Shared accounts have no
// sign-in.
func (s *Store) AccountByEmail(ctx context.Context, email string) (*account.Account, error) {
	var row accountRow
	err := s.db.NewSelect().Model(&row).
		Where("email = ? AND NOT shared AND deleted_at IS NULL AND disabled_at IS NULL", email).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find an account by e-mail: %w", err)
	}
	return row.account(), nil
}

// SetPassword changes the password of the account with an address and ends its sessions, links and invitations. Like the methods below it returns
// account.ErrNotFound for an address without an account.
func (s *Store) SetPassword(ctx context.Context, email, hash string, actor account.Actor, now time.Time) error {
	return s.changeAccount(ctx, accountChange{
		action: account.PasswordReset, set: "password_hash = $1", to: hash, endsAccess: true,
	}, "email = ? AND NOT shared", email, actor, now)
}

// DisableAccount rejects an account's keys and sign-ins until it is enabled again, and ends its sessions, its links
// and the invitations that it made.
func (s *Store) DisableAccount(ctx context.Context, email string, actor account.Actor, now time.Time) error {
	return s.changeAccount(ctx, accountChange{
		action: account.AccountDisabled, set: "disabled_at = $1", to: now, endsAccess: true, endsActing: true,
	}, "email = ?", email, actor, now)
}

// EnableAccount reverses DisableAccount.
func (s *Store) EnableAccount(ctx context.Context, email string, actor account.Actor, now time.Time) error {
	return s.changeAccount(ctx, accountChange{
		action: account.AccountEnabled, set: "disabled_at = $1", to: nil,
	}, "email = ?", email, actor, now)
}

// SetAccountLimit changes the limit of all keys of an account in one environment together; nil means the default.
func (s *Store) SetAccountLimit(ctx context.Context, email string, limit *account.Limit, actor account.Actor, now time.Time) error {
	change := accountChange{
		action: account.AccountLimitChanged, set: "limit_requests = $1, limit_period_seconds = NULL", to: nil, detail: "default",
	}
	if limit != nil {
		change.set = fmt.Sprintf("limit_requests = $1, limit_period_seconds = %d", int(limit.Period/time.Second))
		change.to, change.detail = limit.Requests, limit.String()
	}
	return s.changeAccount(ctx, change, "email = ?", email, actor, now)
}

// accountDeletion ends an account permanently: its sessions end, its keys are rejected, its identities are free again, its passkeys go, a trigger
// ends its memberships, and its intents are kept for audit.
func accountDeletion(now time.Time) accountChange {
	return accountChange{
		action: account.AccountDeleted, set: "deleted_at = $1", to: now, endsAccess: true, endsActing: true, endsAccount: true,
	}
}

// DeleteAccount permanently ends the account of an address. It returns account.ErrLastOwner for the last owner of a shared
// account.
func (s *Store) DeleteAccount(ctx context.Context, email string, actor account.Actor, now time.Time) error {
	return s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
		id, err := tx.leaveAccounts(ctx, "email = ?", email, actor, now)
		if err != nil {
			return err
		}
		return tx.changeAccount(ctx, accountDeletion(now), "id = ?", id, actor, now)
	})
}

// DeleteAccountByID permanently ends an account. It returns account.ErrNotFound for one that has ended already, and
// account.ErrLastOwner. The notice is about the end.
func (s *Store) DeleteAccountByID(
	ctx context.Context, grant access.Grant, accountID uuid.UUID, notice account.Notice, actor account.Actor, now time.Time,
) error {
	change := accountDeletion(now)
	change.notice = notice
	return s.InTx(ctx, grant.Turn(accountID), func(ctx context.Context, tx Tx) error {
		// The accounts of the person are locked in the order of their ids, those of the rights among them.
		if _, err := tx.leaveAccounts(ctx, "id = ?", accountID, actor, now); err != nil {
			return err
		}
		if err := grant.Check(ctx, tx.Tx, accountID); err != nil {
			return err
		}
		return tx.changeAccount(ctx, change, "id = ?", accountID, actor, now)
	})
}

// DeleteSharedAccount permanently ends a shared account by a session of one of its owners. That session goes on with the person's
// own account, and all others that act on the shared one end. It returns account.ErrNotFound for one that has ended already.
func (tx Tx) DeleteSharedAccount(
	ctx context.Context, by access.Rights, accountID uuid.UUID, notice account.Notice, actor account.Actor, now time.Time,
) error {
	if err := by.Cover(tx.Tx, accountID); err != nil {
		return err
	}
	change := accountDeletion(now)
	change.keep, change.notice = by.Session.ID, notice
	return tx.changeAccount(ctx, change, "id = ? AND shared", accountID, actor, now)
}

// accountChange is an assignment to an account's row, whose value is the parameter $1, and its side effects.
type accountChange struct {
	action     account.Action
	detail     string
	set        string
	to         any
	endsAccess bool
	// endsActing ends the sessions of members that act on the account, except keep.
	endsActing  bool
	keep        uuid.UUID
	endsAccount bool
	// notice is who gets a mail about the change, as the account is before it.
	notice account.Notice
}

// changeAccount is what an operator does.
func (s *Store) changeAccount(ctx context.Context, c accountChange, where string, is any, actor account.Actor, now time.Time) error {
	return s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error { return tx.changeAccount(ctx, c, where, is, actor, now) })
}

func (tx Tx) changeAccount(ctx context.Context, c accountChange, where string, is any, actor account.Actor, now time.Time) error {
	var id uuid.UUID
	// The account's row is locked first, so that no session starts between the two deletions and the commit.
	err := tx.db.NewSelect().Model((*accountRow)(nil)).Column("id").Where(where, is).Where("deleted_at IS NULL").For("NO KEY UPDATE").Scan(ctx, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return account.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("lock an account (%s): %w", c.action, err)
	}
	entry, err := account.NewAuditEntry(id, actor, c.action, now)
	if err != nil {
		return err
	}
	entry.Detail, entry.Notice = c.detail, c.notice
	if err := tx.Audit(ctx, entry); err != nil {
		return err
	}
	_, err = tx.db.NewUpdate().Model((*accountRow)(nil)).Set(c.set).Set("updated_at = ?", now).Where("id = ?", id).
		Returning("NULL").Conn(postgres.Bind(tx.db.Tx, c.to)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("change an account (%s): %w", c.action, err)
	}
	if c.endsAccess {
		if err := tx.endAccess(ctx, id); err != nil {
			return err
		}
	}
	if c.endsActing {
		if err := tx.deleteSessionsOn(ctx, id, c.keep); err != nil {
			return err
		}
	}
	if !c.endsAccount {
		return nil
	}
	if _, err := tx.db.NewDelete().Model((*identityRow)(nil)).Where("account_id = ?", id).Exec(ctx); err != nil {
		return fmt.Errorf("free the identities of account %s: %w", id, err)
	}
	if _, err := tx.db.NewDelete().Model((*passkeyRow)(nil)).Where("person_id = ?", id).Exec(ctx); err != nil {
		return fmt.Errorf("delete the passkeys of account %s: %w", id, err)
	}
	if _, err := tx.db.NewRaw("DELETE FROM sign_in_challenges WHERE person_id = ?", id).Exec(ctx); err != nil {
		return fmt.Errorf("delete the challenges of account %s: %w", id, err)
	}
	return nil
}

// leaveAccounts finds the account of a person that is about to end, and writes audit entries for leaving the accounts of others.
// It locks that account and those that the person owns, in the order of their ids, and returns account.ErrLastOwner for the last
// owner of a shared one.
func (tx Tx) leaveAccounts(ctx context.Context, where string, is any, actor account.Actor, now time.Time) (person uuid.UUID, err error) {
	err = tx.db.NewSelect().Model((*accountRow)(nil)).Column("id").Where(where, is).Where("deleted_at IS NULL").Scan(ctx, &person)
	if errors.Is(err, sql.ErrNoRows) {
		return person, account.ErrNotFound
	}
	if err != nil {
		return person, fmt.Errorf("find an account to end: %w", err)
	}
	err = tx.db.NewRaw(`SELECT id FROM accounts WHERE id = ?0 OR id IN (SELECT account_id FROM members WHERE person_id = ?0 AND role = 'owner')
		ORDER BY id FOR NO KEY UPDATE`, person).Scan(ctx, new([]uuid.UUID))
	if err != nil {
		return person, fmt.Errorf("lock the accounts of %s: %w", person, err)
	}
	var left []struct {
		AccountID uuid.UUID
		Needed    bool
	}
	err = tx.db.NewRaw(`SELECT account_id, shared AND role = 'owner' AND NOT `+otherOwner+` AS needed
		FROM members JOIN accounts ON accounts.id = account_id WHERE person_id = ?0 AND account_id <> ?0 ORDER BY account_id`, person).Scan(ctx, &left)
	if err != nil {
		return person, fmt.Errorf("read the memberships of %s: %w", person, err)
	}
	actor.PersonID = person
	for _, membership := range left {
		if membership.Needed {
			return person, account.ErrLastOwner
		}
		entry, err := account.NewAuditEntry(membership.AccountID, actor, account.MemberLeft, now)
		if err != nil {
			return person, err
		}
		entry.Detail = "with the person's own account"
		if err := tx.Audit(ctx, entry); err != nil {
			return person, err
		}
	}
	return person, nil
}

// AccountsByEmail are the ids of all accounts that have or had an address, oldest first: the one that may sign in with it and ended
// ones.
func (s *Store) AccountsByEmail(ctx context.Context, email string) (ids []uuid.UUID, err error) {
	if err := s.db.NewSelect().Model((*accountRow)(nil)).Column("id").Where("email = ?", email).Order("id").Scan(ctx, &ids); err != nil {
		return nil, fmt.Errorf("find accounts by e-mail: %w", err)
	}
	return ids, nil
}
