package intents

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/identities"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
)

const (
	// SubmissionInterval is how often a solver is asked what became of an order.
	SubmissionInterval = time.Minute
	// submissionBatch bounds the orders that are asked about at once.
	submissionBatch = 32
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
	ctx context.Context, grant identities.Grant, accountID, id uuid.UUID, unanswered transfer.SubmissionStatus,
) (begun bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	err = s.InTx(ctx, grant.Turn(id), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, identities.Within(tx.db), accountID); err != nil {
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
// SubmissionInterval. The accounts take turns, so that one with many orders holds up no other. more means that others may be due.
func (s *Store) TakeSubmissions(ctx context.Context) (due []*transfer.Intent, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	var rows []TransferRow
	err = s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
		return tx.db.NewSelect().Model(&rows).
			With("due", tx.db.NewRaw(`SELECT account_id, id, submission_due_at,
				row_number() OVER (PARTITION BY quote_provider, account_id ORDER BY submission_due_at, id) AS turn
				FROM transfers WHERE submission_due_at <= statement_timestamp()`)).
			With("picked", tx.db.NewRaw(`SELECT transfers.account_id, transfers.id FROM transfers JOIN due USING (account_id, id)
				WHERE transfers.submission_due_at <= statement_timestamp()
				ORDER BY due.turn, due.submission_due_at LIMIT ? FOR UPDATE OF transfers SKIP LOCKED`, submissionBatch)).
			With("taken", tx.db.NewRaw(`UPDATE transfers SET
					submission_due_at = CASE WHEN status = 'created' THEN statement_timestamp() + ? * interval '1 second' END
				FROM picked WHERE transfers.account_id = picked.account_id AND transfers.id = picked.id
				RETURNING transfers.account_id, transfers.id`, SubmissionInterval.Seconds())).
			Join("JOIN taken ON taken.account_id = transfers.account_id AND taken.id = transfers.id").Scan(ctx)
	})
	if err != nil {
		return nil, false, fmt.Errorf("read the orders to ask solvers about: %w", err)
	}
	for _, intent := range readEach(s, rows, TransferRow.Intent) {
		if intent.Status == transfer.Created {
			due = append(due, intent)
		}
	}
	return due, len(rows) > 0, nil
}
