package intents

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/core/identity/access"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
)

const (
	// SubmissionInterval is how often a solver is asked what became of an order.
	SubmissionInterval = time.Minute
	// submissionBatch bounds the orders that are asked about at once, and submissionShare those of one account, for which a provider is called no
	// more than 16 times at once.
	submissionBatch, submissionShare = 32, 16
	// submissionAccounts bounds the accounts that a batch looks at.
	submissionAccounts = 1000
)

// Submission are the columns of transfers about handing an order to a solver.
type Submission struct {
	Submit           bool                      `bun:"submit"`
	SubmittedAt      time.Time                 `bun:"submitted_at,nullzero"`
	SubmissionStatus transfer.SubmissionStatus `bun:"submission_status,nullzero"`
	SubmissionDetail string                    `bun:"submission_detail,nullzero"`
	SubmissionDueAt  time.Time                 `bun:"submission_due_at,nullzero"`
}

// BeginSubmission records that the order of an intent is being handed to its solver, with the status that holds until an answer is known. It reports
// whether the caller is the one to send it: once for an intent, while it is created and has a signature.
func (s *Store) BeginSubmission(
	ctx context.Context, grant access.Grant, accountID, id uuid.UUID, unanswered transfer.SubmissionStatus,
) (begun bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	err = s.InTx(ctx, grant.Turn(id), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, access.Within(tx.db), accountID); err != nil {
			return err
		}
		changed, err := postgres.RowsChanged(tx.db.NewRaw(`UPDATE transfers SET submitted_at = clock_timestamp(), submission_status = ?,
				submission_due_at = clock_timestamp() + ? * interval '1 second'
			WHERE account_id = ? AND id = ? AND submit AND submitted_at IS NULL AND status = 'created' AND signature IS NOT NULL`,
			unanswered, SubmissionInterval.Seconds(), accountID, id).Exec(ctx))
		begun = changed > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("begin to submit the order of transfer %s: %w", id, err)
	}
	return begun, nil
}

// SaveSubmission records what a solver has answered about an order. Unless it is asked again the answer is its last.
func (s *Store) SaveSubmission(ctx context.Context, accountID, id uuid.UUID, status transfer.SubmissionStatus, detail string, again bool) error {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	_, err := s.db.NewRaw(`UPDATE transfers SET submission_status = ?, submission_detail = nullif(?, ''),
			submission_due_at = CASE WHEN ? THEN submission_due_at END
		WHERE account_id = ? AND id = ? AND submitted_at IS NOT NULL`, status, detail, again, accountID, id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write the submission of transfer %s: %w", id, err)
	}
	return nil
}

// TakeSubmissions returns created intents whose solvers are to be asked now what became of their orders, and leaves each to no other core for
// SubmissionInterval. It reads a bounded number of rows, of accounts after one in the order of their ids: of as many as have a turn, and then the
// next order of each before the second one of any, so that one with many holds up no other. next is the account after which the others follow, nil
// after the last. more means that others may be due.
func (s *Store) TakeSubmissions(ctx context.Context, after uuid.UUID) (due []*transfer.Intent, next uuid.UUID, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	var rows []TransferRow
	err = s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) (err error) {
		if _, err := tx.db.NewRaw(postgres.IndexOrder).Exec(ctx); err != nil {
			return err
		}
		var accounts []string
		if accounts, next, err = submissionTurns(ctx, tx, after); err != nil || len(accounts) == 0 {
			return err
		}
		rows, err = takeSubmissions(ctx, tx, accounts)
		return err
	})
	if err != nil {
		return nil, after, false, fmt.Errorf("read the orders to ask solvers about: %w", err)
	}
	for _, intent := range readEach(s, rows, TransferRow.Intent) {
		if intent.Status == transfer.Created {
			due = append(due, intent)
		}
	}
	return due, next, len(rows) > 0 || next != uuid.Nil, nil
}

// submissionTurns reads the accounts after one that have orders to ask about now, with one row of each account that has any to ask about at some
// time.
func submissionTurns(ctx context.Context, tx Tx, after uuid.UUID) (accounts []string, next uuid.UUID, err error) {
	const following = `SELECT account_id, submission_due_at <= statement_timestamp() AS due FROM transfers
		WHERE submission_due_at IS NOT NULL AND account_id > `
	const first = ` ORDER BY account_id, submission_due_at LIMIT 1`
	var turns []struct {
		AccountID     uuid.UUID
		Due           bool
		Scanned, Have int
	}
	err = tx.db.NewRaw(`WITH RECURSIVE turns AS (
			SELECT account_id, due, 1 AS scanned, due::int AS have FROM (`+following+`?0`+first+`) AS first
			UNION ALL
			SELECT following.account_id, following.due, turns.scanned + 1, turns.have + following.due::int
			FROM turns CROSS JOIN LATERAL (`+following+`turns.account_id`+first+`) AS following WHERE turns.scanned < ?1 AND turns.have < ?2
		) SELECT account_id, due, scanned, have FROM turns WHERE due OR scanned = ?1 ORDER BY scanned`,
		after, submissionAccounts, submissionBatch).Scan(ctx, &turns)
	for _, turn := range turns {
		if turn.Due {
			accounts = append(accounts, turn.AccountID.String())
		}
		if turn.Scanned == submissionAccounts || turn.Have == submissionBatch {
			next = turn.AccountID
		}
	}
	return accounts, next, err
}

// takeSubmissions takes orders of accounts. It finds their rows by the order's id: for the id of an intent, whose index begins with the account, a
// planner with old statistics may take another index of the account and read all of it for each row.
func takeSubmissions(ctx context.Context, tx Tx, accounts []string) (rows []TransferRow, err error) {
	err = tx.db.NewSelect().Model(&rows).
		With("due", tx.db.NewRaw(`SELECT due.*, row_number() OVER (PARTITION BY due.account_id ORDER BY due.submission_due_at) AS turn
			FROM unnest(?::uuid[]) AS account (id) CROSS JOIN LATERAL (SELECT account_id, order_id, submission_due_at FROM transfers
				WHERE account_id = account.id AND submission_due_at <= statement_timestamp() ORDER BY submission_due_at LIMIT ?) AS due
			ORDER BY turn, due.submission_due_at LIMIT ?`, pgdialect.Array(accounts), submissionShare, submissionBatch)).
		With("picked", tx.db.NewRaw(`SELECT order_id FROM transfers JOIN due USING (order_id)
			WHERE transfers.submission_due_at <= statement_timestamp() FOR UPDATE OF transfers SKIP LOCKED`)).
		With("taken", tx.db.NewRaw(`UPDATE transfers SET
				submission_due_at = CASE WHEN status = 'created' THEN statement_timestamp() + ? * interval '1 second' END
			FROM picked WHERE transfers.order_id = picked.order_id RETURNING transfers.order_id`, SubmissionInterval.Seconds())).
		Join("JOIN taken USING (order_id)").Scan(ctx)
	return rows, err
}
