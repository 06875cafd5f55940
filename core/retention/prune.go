package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity"
	"intents.internal/core/postgres"
	"intents.internal/core/screening"
)

const (
	// usageRetention is how long usage can be read.
	usageRetention = 8 * 24 * time.Hour
	// quoteRetention is how long quotes that have made an intent can be read, and unusedQuoteRetention others after their end.
	quoteRetention, unusedQuoteRetention = 30 * 24 * time.Hour, 24 * time.Hour
	// attemptRetention is how long the attempts of deliveries, and what receivers answered, can be read.
	attemptRetention = 7 * 24 * time.Hour
	// deliveryRetention is how long deliveries can be read.
	deliveryRetention = 30 * 24 * time.Hour
	// usageReportRetention is how long the id of a usage report is kept, by which a repeated report is recognized.
	usageReportRetention = 24 * time.Hour
	// mailRetention is how long an unsent mail is kept, for example after CORE_SMTP_URL was removed.
	mailRetention = 24 * time.Hour
	// disputeRetention is above the longest time between two comparisons: the transactions are not disputed any more.
	disputeRetention = 24 * time.Hour
	// unconfirmedRetention is how long a sign-up may be confirmed by another link, after its first.
	unconfirmedRetention = 7 * 24 * time.Hour
	// pruneBatch is how many rows one transaction removes, which keeps it within its time limit.
	pruneBatch = 5_000
	// pruneAccounts is how many accounts one statement checks for old rows.
	pruneAccounts = 1_000
	// pruneLock is the advisory lock of the core that prunes. The number is arbitrary.
	pruneLock = 7_403_118_226
)

// The shortest retentions; 0 keeps rows for ever.
const (
	// MinEventsRetention is twice the cursorLifetime, as change checks read events.
	MinEventsRetention = 2 * postgres.CursorLifetime
	// MinAuditRetention is enforced by the trigger on audit_log.
	MinAuditRetention = 30 * 24 * time.Hour
	// MinTransfersRetention is well above the longest deadline, 7 days.
	MinTransfersRetention = 30 * 24 * time.Hour
)

// Retention is how long rows are kept; 0 keeps them for ever.
type Retention struct {
	// Events is the age of an event. The newest event of each intent is kept.
	Events time.Duration
	// Audit is the age of an audit entry, and of a hit of the screening list.
	Audit time.Duration
	// Transfers is the time since the last change of an intent that has ended. Its events are removed with it.
	Transfers time.Duration
}

// errPruning means that another core is pruning.
var errPruning = errors.New("another core is pruning")

// Prune removes rows that are no longer needed: sessions, nonces, challenges, link tokens, invitations, idempotency keys of webhooks and rotated
// keys that have expired, sign-ups that nobody confirmed, mails that nobody sends, accepted screening files, key changes that no valid cursor reaches, disputes,
// usage and reports past their retention, and rows older than keep. It returns the number of removed rows of each table. A step
// that fails ends no other, and the errors are joined. While another core prunes, it leaves the rest to that core.
func (s *Store) Prune(ctx context.Context, now time.Time, keep Retention) (removed map[string]int64, err error) {
	p := pruner{store: s, now: now, removed: map[string]int64{}}
	for _, step := range p.steps(keep) {
		stepErr := step.run(ctx)
		if err != nil {
			stepErr = again(ctx, step.run, stepErr)
		}
		switch {
		case errors.Is(stepErr, errPruning):
			return p.removed, err
		case stepErr != nil:
			s.pruning.failures.Inc()
			err = errors.Join(err, fmt.Errorf("prune %s: %w", step.name, stepErr))
		}
		if ctx.Err() != nil {
			return p.removed, err // every step needs the context
		}
	}
	return p.removed, err
}

// again repeats a step for up to a second while the lock is held: a step that failed may have closed its connection, and Postgres takes a
// moment to end that one's transaction.
func again(ctx context.Context, step func(context.Context) error, err error) error {
	const tries, pause = 20, 50 * time.Millisecond
	for n := 0; n < tries && errors.Is(err, errPruning) && ctx.Err() == nil; n++ {
		time.Sleep(pause)
		err = step(ctx)
	}
	return err
}

// pruner is one run of Prune.
type pruner struct {
	store   *Store
	now     time.Time
	removed map[string]int64
}

// step removes rows of one kind. Its name is in its error.
type step struct {
	name string
	run  func(context.Context) error
}

func (p pruner) steps(keep Retention) []step {
	return []step{
		{"sessions", p.expired("sessions", "expires_at", p.now)},
		{"nonces", p.expired("nonces", "expires_at", p.now)},
		{"sign_in_challenges", p.expired("sign_in_challenges", "expires_at", p.now)},
		{"reset_tokens", p.expired("reset_tokens", "expires_at", p.now)},
		{"link_tokens", p.expired("link_tokens", "expires_at", p.now)},
		{"invitations", p.expired("invitations", "expires_at", p.now)},
		{"disputed_transactions", p.expired("disputed_transactions", "compare_at", p.now.Add(-disputeRetention))},
		{"webhook_requests", p.expired("webhook_requests", "expires_at", p.now)},
		{"mails", p.expired("mails", "created_at", p.now.Add(-mailRetention))},
		// Rows stay for twice the cursorLifetime, so that none is removed while a reader with a valid cursor needs it.
		{"key_changes", p.expired("key_changes", "changed_at", p.now.Add(-2*postgres.CursorLifetime))},
		{"key_usage", p.expired("key_usage", "minute", p.now.Add(-usageRetention))},
		{"usage_reports", p.expired("usage_reports", "received_at", p.now.Add(-usageReportRetention))},
		{"accounts", p.unconfirmed},
		{"api_keys", p.rotatedKeys},
		{"audit_log", p.audit(keep.Audit)},
		{"transfers", p.transfers(keep.Transfers)},
		{"feed", p.events(keep.Events)},
		{"deliveries", p.deliveries},
		{"delivery_attempts", p.expired("delivery_attempts", "ended_at", p.now.Add(-attemptRetention))},
		{"unused quotes", p.unusedQuotes},
		{"quotes", p.expired("quotes", "created_at", p.now.Add(-quoteRetention))},
		{"screening_hits", p.screeningHits(keep.Audit)},
		{"screening_accepted", p.expired("screening_accepted", "accepted_at", p.now.Add(-screening.AcceptedFor))},
	}
}

// expired removes the rows whose time in column is before another.
func (p pruner) expired(table, column string, before time.Time) func(context.Context) error {
	return func(ctx context.Context) error {
		return p.deleteInBatches(ctx, table, countDeleted("DELETE FROM ?0 WHERE ctid = ANY (ARRAY(SELECT ctid FROM ?0 WHERE ?1 < ?2 LIMIT ?3)) RETURNING 1"),
			bun.Ident(table), bun.Ident(column), before, pruneBatch)
	}
}

// unusedQuotes removes quotes that have ended and made no intent. It skips those that another transaction has locked.
func (p pruner) unusedQuotes(ctx context.Context) error {
	return p.deleteInBatches(ctx, "quotes", countDeleted(`DELETE FROM quotes WHERE transfer_id IS NULL AND (account_id, id) IN (
		SELECT account_id, id FROM quotes WHERE transfer_id IS NULL AND expires_at < ? ORDER BY expires_at LIMIT ? FOR UPDATE SKIP LOCKED) RETURNING 1`),
		p.now.Add(-unusedQuoteRetention), pruneBatch)
}

// unconfirmed removes the accounts of sign-ups that nobody has confirmed. Such an account may have been entered while no mail was
// configured; then it stays. It skips accounts that another transaction has locked.
func (p pruner) unconfirmed(ctx context.Context) error {
	return p.deleteInBatches(ctx, "accounts", `WITH unconfirmed AS (
			SELECT id FROM accounts WHERE verification_required AND email_verified_at IS NULL AND deleted_at IS NULL AND created_at < ?0
				AND NOT `+identity.Entered+`
				AND NOT EXISTS (SELECT FROM link_tokens WHERE account_id = accounts.id)
				AND NOT EXISTS (SELECT FROM reset_tokens WHERE account_id = accounts.id)
			ORDER BY created_at LIMIT ?1 FOR UPDATE SKIP LOCKED
		), holders AS (DELETE FROM members WHERE account_id IN (SELECT id FROM unconfirmed)
		), deleted AS (DELETE FROM accounts WHERE id IN (SELECT id FROM unconfirmed) RETURNING 1
		) SELECT count(*) FROM deleted`, p.now.Add(-unconfirmedRetention), pruneBatch)
}

// rotatedKeys marks keys whose grace period has ended as deleted. It skips keys that another transaction has locked, which
// prevents deadlocks.
func (p pruner) rotatedKeys(ctx context.Context) error {
	_, err := p.store.db.NewRaw(`UPDATE api_keys SET deleted_at = ?0, updated_at = ?0 WHERE id IN (
		SELECT id FROM api_keys WHERE rotated_at IS NOT NULL AND deleted_at IS NULL AND expires_at <= ?0 FOR UPDATE SKIP LOCKED
	)`, p.now).Exec(ctx)
	return err
}

// audit finds old entries by the primary key: ids are UUIDv7 and so in the order of time.
func (p pruner) audit(keep time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		if keep == 0 {
			return nil
		}
		before := p.now.Add(-keep)
		return p.deleteInBatches(ctx, "audit_log", countDeleted(`DELETE FROM audit_log WHERE id = ANY (ARRAY(
			SELECT id FROM audit_log WHERE id < ? AND occurred_at < ? ORDER BY id LIMIT ?)) RETURNING 1`), firstIDAt(before), before, pruneBatch)
	}
}

func (p pruner) screeningHits(keep time.Duration) func(context.Context) error {
	if keep == 0 {
		return func(context.Context) error { return nil }
	}
	return p.expired("screening_hits", "at", p.now.Add(-keep))
}

// firstIDAt is the smallest UUIDv7 of an instant.
func firstIDAt(t time.Time) (id uuid.UUID) {
	milliseconds := t.UnixMilli()
	for n := range 6 {
		id[n] = byte(milliseconds >> (8 * (5 - n))) //nolint:gosec // only the low byte is used
	}
	id[6], id[8] = 0x70, 0x80
	return id
}

// transfers removes intents account by account, by the index on (account_id, updated_at), with their events and transactions.
// Intents that may still change are kept, whatever their age.
func (p pruner) transfers(keep time.Duration) func(context.Context) error {
	const ended = `(simulated OR status NOT IN ('created', 'submitted') AND (status <> 'confirmed' OR type = 'transfer'))`
	return p.byAccount("transfers", keep,
		`coalesce((SELECT true FROM transfers WHERE account_id = window_of.id AND updated_at < ? AND `+ended+` LIMIT 1), false)`,
		`WITH deleted AS (
			DELETE FROM transfers WHERE account_id = ?0 AND updated_at < ?1 AND `+ended+` AND id = ANY (ARRAY(
				SELECT id FROM transfers WHERE account_id = ?0 AND updated_at < ?1 AND `+ended+` ORDER BY updated_at LIMIT ?2))
			RETURNING id, batch_id
		), deleted_events AS (DELETE FROM events WHERE account_id = ?0 AND transfer_id IN (SELECT id FROM deleted)),
		deleted_updates AS (DELETE FROM transfer_updates WHERE account_id = ?0 AND transfer_id IN (SELECT id FROM deleted)),
		deleted_transactions AS (DELETE FROM transactions WHERE account_id = ?0 AND transfer_id IN (SELECT id FROM deleted)),
		deleted_batches AS (DELETE FROM batches WHERE account_id = ?0 AND id IN (SELECT batch_id FROM deleted) AND NOT EXISTS (
			SELECT FROM transfers WHERE account_id = ?0 AND batch_id = batches.id AND id NOT IN (SELECT id FROM deleted)))
		SELECT count(*) FROM deleted`)
}

// events removes the feed from its beginning, and with each of its rows the events of its intent up to that one. The newest event
// of an intent is kept, because the next sequence is derived from it. Positions are times, so the age needs no additional index.
func (p pruner) events(keep time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		if keep == 0 {
			return nil
		}
		return p.deleteInBatches(ctx, "feed", `WITH old AS (
				DELETE FROM feed WHERE position = ANY (ARRAY(
					SELECT position FROM feed WHERE position <= ?0 ORDER BY position LIMIT ?1))
				RETURNING account_id, event_id
			), reached AS (
				SELECT events.account_id, events.transfer_id, max(events.id) AS id
				FROM old JOIN events ON events.account_id = old.account_id AND events.id = old.event_id GROUP BY 1, 2
			), deleted AS (
				DELETE FROM events USING reached WHERE events.account_id = reached.account_id AND events.transfer_id = reached.transfer_id
					AND events.id <= reached.id AND EXISTS (SELECT FROM events AS later WHERE later.account_id = events.account_id
						AND later.transfer_id = events.transfer_id AND later.id > events.id)
			) SELECT count(*) FROM old`, p.now.Add(-keep).UnixMicro(), pruneBatch)
	}
}

// deliveries removes old deliveries and those of deleted endpoints, endpoint by endpoint, by the index on their positions, which
// are times in microseconds. It keeps a delivery of an old event that was redelivered recently.
func (p pruner) deliveries(ctx context.Context) error {
	var endpoints []struct {
		ID      uuid.UUID
		Deleted bool
	}
	err := p.store.db.NewRaw(`WITH RECURSIVE endpoints AS (
			(SELECT webhook_id FROM deliveries ORDER BY webhook_id LIMIT 1)
			UNION ALL SELECT next.webhook_id FROM endpoints CROSS JOIN LATERAL (
				SELECT webhook_id FROM deliveries WHERE webhook_id > endpoints.webhook_id ORDER BY webhook_id LIMIT 1) AS next
		) SELECT webhook_id AS id, NOT EXISTS (SELECT FROM webhooks WHERE webhooks.id = webhook_id) AS deleted FROM endpoints`).Scan(ctx, &endpoints)
	if err != nil {
		return err
	}
	before := p.now.Add(-deliveryRetention)
	for _, e := range endpoints {
		itemErr := p.deleteInBatches(ctx, "deliveries", countDeleted(`DELETE FROM deliveries WHERE webhook_id = ?0 AND event_id = ANY (ARRAY(
			SELECT event_id FROM deliveries WHERE webhook_id = ?0 AND (?1 OR position < ?2 AND updated_at < ?3) ORDER BY position LIMIT ?4))
			RETURNING 1`), e.ID, e.Deleted, before.UnixMicro(), before, pruneBatch)
		if endsStep(ctx, itemErr) {
			return errors.Join(err, itemErr)
		}
		err = cmp.Or(err, itemErr)
	}
	return err
}

// endsStep reports whether an item's error is one of the whole step: another core prunes, or the database does not answer.
func endsStep(ctx context.Context, err error) bool {
	return errors.Is(err, errPruning) || ctx.Err() != nil || postgres.Unavailable(err) && !postgres.IsLocked(err)
}

// byAccount checks pruneAccounts accounts at a time for old rows, and deletes those of the accounts that have some.
func (p pruner) byAccount(table string, keep time.Duration, old, query string) func(context.Context) error {
	return func(ctx context.Context) error {
		if keep == 0 {
			return nil
		}
		before := p.now.Add(-keep)
		var failed error
		for after := uuid.Nil; ; {
			var accounts []struct {
				ID  uuid.UUID
				Old bool
			}
			err := p.store.db.NewRaw("SELECT id, "+old+" AS old FROM (SELECT id FROM accounts WHERE id > ? ORDER BY id LIMIT ?) AS window_of ORDER BY id",
				before, after, pruneAccounts).Scan(ctx, &accounts)
			if err != nil {
				return errors.Join(failed, err)
			}
			for _, a := range accounts {
				if !a.Old {
					continue
				}
				itemErr := p.deleteInBatches(ctx, table, query, a.ID, before, pruneBatch)
				if endsStep(ctx, itemErr) {
					return errors.Join(failed, itemErr)
				}
				failed = cmp.Or(failed, itemErr)
			}
			if len(accounts) < pruneAccounts {
				return failed
			}
			after = accounts[len(accounts)-1].ID
		}
	}
}

// countDeleted returns a query for the number of rows of a statement that returns one row for each.
func countDeleted(statement string) string {
	return "WITH deleted AS (" + statement + ") SELECT count(*) FROM deleted"
}

// deleteInBatches repeats a query that removes up to pruneBatch rows and returns their number, until there are fewer. Each is its
// own transaction under the advisory lock, which also works through a transaction pooler. It returns errPruning while another
// core has the lock.
func (p pruner) deleteInBatches(ctx context.Context, table, query string, args ...any) error {
	for {
		var removed int64
		err := p.store.db.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx bun.Tx) error {
			var locked bool
			if err := tx.NewRaw("SELECT pg_try_advisory_xact_lock(?)", pruneLock).Scan(ctx, &locked); err != nil {
				return err
			}
			if !locked {
				return errPruning
			}
			return tx.NewRaw(query, args...).Scan(ctx, &removed)
		})
		if err != nil {
			return err
		}
		p.removed[table] += removed
		p.store.pruning.rows.WithLabelValues(table).Add(float64(removed))
		if removed < pruneBatch {
			return nil
		}
	}
}
