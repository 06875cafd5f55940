package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

type auditRow struct {
	bun.BaseModel `bun:"table:audit_log,alias:audit_log"`

	ID         uuid.UUID      `bun:"id,pk"`
	AccountID  uuid.UUID      `bun:"account_id"`
	OccurredAt time.Time      `bun:"occurred_at"`
	Actor      string         `bun:"actor"`
	Action     account.Action `bun:"action"`
	KeyID      *uuid.UUID     `bun:"key_id"`
	KeyName    string         `bun:"key_name"`
	Detail     string         `bun:"detail"`
	IPAddress  string         `bun:"ip_address"`
	UserAgent  string         `bun:"user_agent"`
	PersonID   uuid.UUID      `bun:"person_id,nullzero"`
	Repeats    int            `bun:"repeats"`
	LastAt     *time.Time     `bun:"last_at"`
	LastDetail string         `bun:"last_detail,nullzero"`

	Person *personRow `bun:"rel:belongs-to,join:person_id=id"`
	Holder *personRow `bun:"rel:belongs-to,join:account_id=id"`
}

// personRow is what the log says of who acted and of whose it is.
type personRow struct {
	bun.BaseModel `bun:"table:accounts,alias:accounts"`

	ID     uuid.UUID `bun:"id,pk"`
	Name   string    `bun:"name"`
	Email  string    `bun:"email"`
	Shared bool      `bun:"shared"`
}

const operator = "operator"

// Audit writes an audit entry in the transaction, or counts an hourly one, and queues the mails about it.
func (tx Tx) Audit(ctx context.Context, e account.AuditEntry) error {
	if e.Subject != "" {
		if err := tx.auditHourly(ctx, e, "id = ?8", e.AccountID); err != nil {
			return err
		}
		return tx.queueNotices(ctx, e)
	}
	row := auditRow{
		ID: e.ID, AccountID: e.AccountID, OccurredAt: e.OccurredAt, Actor: "owner", Action: e.Action,
		KeyID: e.KeyID, KeyName: e.KeyName, Detail: e.Detail, IPAddress: e.Actor.IPAddress, UserAgent: e.Actor.UserAgent, PersonID: e.Actor.PersonID,
	}
	if e.Actor.Operator {
		row.Actor = operator
	}
	insert := tx.db.NewInsert().Model(&row)
	if e.KeyID != nil && e.KeyName == "" {
		insert.Value("key_name", "coalesce((SELECT name FROM api_keys WHERE id = ?), '')", e.KeyID)
	}
	if _, err := insert.Exec(ctx); err != nil {
		return fmt.Errorf("write %s to the audit log of account %s: %w", e.Action, e.AccountID, err)
	}
	return tx.queueNotices(ctx, e)
}

// hourly stores an hourly entry for the account of a condition, or counts it if the hour has one, whose first time and detail stay.
const hourly = `INSERT INTO audit_log (id, account_id, occurred_at, actor, action, key_id, key_name, detail, ip_address, user_agent, person_id, repeats)
	SELECT ?0, id, ?1, 'owner', ?2, ?3, coalesce((SELECT name FROM api_keys WHERE id = ?3), ''), ?4, ?5, ?6, ?7, ?9 FROM accounts
	WHERE deleted_at IS NULL AND %s
	ON CONFLICT (id) DO UPDATE SET repeats = audit_log.repeats + excluded.repeats + 1, last_at = excluded.occurred_at, last_detail = nullif(excluded.detail, '')`

// AuditAttempt stores or counts an hourly entry about the account of an address, if there is one that is not an unconfirmed sign-up, which has
// no log yet. It does the same for any address, and does not wait for the commit to be durable, so that its duration reveals little.
func (s *Store) AuditAttempt(ctx context.Context, email string, e account.AuditEntry) error {
	return s.db.InTx(ctx, TurnOfEmail(email), func(ctx context.Context, bunTx bun.Tx) error {
		tx := Within(bunTx)
		if _, err := tx.db.NewRaw("SET LOCAL synchronous_commit = off").Exec(ctx); err != nil {
			return fmt.Errorf("record an attempt: %w", err)
		}
		return tx.auditHourly(ctx, e, "email = ?8 AND NOT shared AND disabled_at IS NULL AND (email_verified_at IS NOT NULL OR NOT verification_required)", email)
	})
}

func (tx Tx) auditHourly(ctx context.Context, e account.AuditEntry, where string, is any) error {
	_, err := tx.db.NewRaw(fmt.Sprintf(hourly, where),
		e.ID, e.OccurredAt, e.Action, e.KeyID, e.Detail, e.Actor.IPAddress, e.Actor.UserAgent, postgres.NullID(e.Actor.PersonID), is, e.Repeats).Exec(ctx)
	if err != nil {
		return fmt.Errorf("count %s in the audit log: %w", e.Action, err)
	}
	return nil
}

// AuditQuery is a query for entries of an account's audit log, newest first by their first time.
type AuditQuery struct {
	// Before is the entry after which the page begins, uuid.Nil for the first page. Nothing comes after an entry that is gone.
	Before uuid.UUID
	// Action is empty for all.
	Action account.Action
	// Operator selects what operators did, and PersonID what a person did; uuid.Nil for all.
	Operator bool
	PersonID uuid.UUID
	// Since and Until bound the first time, which is before Until; zero for no bound.
	Since, Until time.Time
	Limit        int
}

// auditKey is the place of an entry in the log.
type auditKey struct {
	ID         uuid.UUID
	OccurredAt time.Time
}

// AuditLog reads a page of an account's audit log, and the entry after which the next page begins, uuid.Nil at the end. A page of an action or a
// person examines at most postgres.LongScan entries: it may be empty and have a next one.
func (s *Store) AuditLog(ctx context.Context, accountID uuid.UUID, q AuditQuery) (entries []account.AuditEntry, next uuid.UUID, err error) {
	limit := q.Limit
	q.Limit++ // one more entry shows whether there is a next page
	var keys []auditKey
	var last *auditKey
	filtered := q.Action != "" || q.Operator || q.PersonID != uuid.Nil
	err = s.db.LongLists.ReadPage(ctx, accountID, q.Limit, filtered, func(ctx context.Context, scan int) (incomplete bool, err error) {
		keys, last, err = s.scanAudit(ctx, accountID, q, scan)
		return last != nil && len(keys) < q.Limit, err
	})
	if err == nil && len(keys) > limit {
		keys = keys[:limit]
		last = &keys[limit-1]
	}
	if err == nil {
		entries, err = s.auditEntries(ctx, keys)
	}
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("read the audit log of account %s: %w", accountID, err)
	}
	if last != nil {
		next = last.ID
	}
	return entries, next, nil
}

// scanAudit reads up to q.Limit places among the next scan entries, and where the log continues.
func (s *Store) scanAudit(ctx context.Context, accountID uuid.UUID, q AuditQuery, scan int) (keys []auditKey, next *auditKey, err error) {
	index := s.db.NewSelect().Model((*auditRow)(nil)).Column("id", "occurred_at").Where("account_id = ?", accountID)
	if q.Before != uuid.Nil {
		index.Where("(occurred_at, id) < ((SELECT occurred_at FROM audit_log AS before WHERE before.id = ?0 AND before.account_id = ?1), ?0)", q.Before, accountID)
	}
	if !q.Since.IsZero() {
		index.Where("occurred_at >= ?", q.Since)
	}
	if !q.Until.IsZero() {
		index.Where("occurred_at < ?", q.Until)
	}
	condition, args := "true", []any(nil)
	if q.Action != "" {
		condition, args = condition+" AND action = ?", append(args, q.Action)
	}
	if q.Operator {
		condition, args = condition+" AND actor = ?", append(args, operator)
	}
	if q.PersonID != uuid.Nil { // entries without a person are the holder's, see auditRow.entry
		condition += " AND actor <> ? AND (person_id = ? OR person_id IS NULL AND account_id = ? AND action NOT IN (?))"
		args = append(args, operator, q.PersonID, q.PersonID, bun.List(byStrangers))
	}
	list := postgres.ListScan{Index: postgres.Matches(index, condition, args...), Order: "occurred_at DESC, id DESC", Rows: q.Limit, Scan: scan}
	return postgres.Scan[auditKey](ctx, s.db, list)
}

// auditEntries reads the entries at these places, in the order of the log.
func (s *Store) auditEntries(ctx context.Context, keys []auditKey) ([]account.AuditEntry, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	ids := make([]uuid.UUID, len(keys))
	for n, key := range keys {
		ids[n] = key.ID
	}
	var rows []auditRow
	err := s.db.NewSelect().Model(&rows).Relation("Person").Relation("Holder").Where("audit_log.id IN (?)", bun.List(ids)).
		Order("audit_log.occurred_at DESC", "audit_log.id DESC").Scan(ctx)
	entries := make([]account.AuditEntry, len(rows))
	for i, r := range rows {
		entries[i] = r.entry()
	}
	return entries, err
}

// byStrangers are the actions that anybody can take, or a key.
var byStrangers = []account.Action{account.SignInFailed, account.ResetRequested, account.ScreeningRefused}

// AuditEntry reads an entry of an account and the name of the account, which may have ended since, or returns account.ErrNotFound.
func (s *Store) AuditEntry(ctx context.Context, accountID, id uuid.UUID) (e account.AuditEntry, accountName string, err error) {
	var row auditRow
	err = s.db.NewSelect().Model(&row).Relation("Person").Relation("Holder").
		Where("audit_log.id = ? AND audit_log.account_id = ?", id, accountID).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) || err == nil && row.Holder == nil {
		return account.AuditEntry{}, "", account.ErrNotFound
	}
	if err != nil {
		return account.AuditEntry{}, "", fmt.Errorf("read entry %s of account %s: %w", id, accountID, err)
	}
	return row.entry(), row.Holder.Name, nil
}

func (r auditRow) entry() account.AuditEntry {
	e := account.AuditEntry{
		ID: r.ID, AccountID: r.AccountID, OccurredAt: r.OccurredAt.UTC(), Action: r.Action,
		Actor: account.Actor{Operator: r.Actor == operator, PersonID: r.PersonID, IPAddress: r.IPAddress, UserAgent: r.UserAgent},
		KeyID: r.KeyID, KeyName: r.KeyName, Detail: r.Detail,
		Repeats: r.Repeats, LastAt: postgres.UTC(r.LastAt), LastDetail: r.LastDetail,
	}
	by := r.Person
	if by == nil && r.Holder != nil && !r.Holder.Shared && !slices.Contains(byStrangers, r.Action) {
		by = r.Holder
	}
	if by != nil && r.Actor != operator {
		e.PersonName, e.PersonEmail = by.Name, by.Email
	}
	return e
}
