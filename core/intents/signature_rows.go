package intents

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
)

// SignatureRetention is how long after an intent's deadline its signature is kept, if nothing has executed the intent.
const SignatureRetention = time.Hour

// SaveSignature stores a valid signature of an intent in place of any before, and returns the intent with the time of it. at is called with the
// intent as it is then; its error ends the transaction and is returned.
func (s *Store) SaveSignature(
	ctx context.Context, grant access.Grant, accountID, id uuid.UUID, signature []byte, at func(*transfer.Intent, time.Time) error,
) (signed *transfer.Intent, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	err = s.InTx(ctx, grant.Turn(id), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, access.Within(tx.db), accountID); err != nil {
			return err
		}
		if signed, err = tx.LockTransfer(ctx, accountID, id); err != nil {
			return err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		if err := at(signed, now); err != nil {
			return err
		}
		signed.Signing.SignedAt = now
		_, err = tx.db.NewUpdate().Model((*TransferRow)(nil)).Set("signature = ?", signature).Set("signed_at = ?", now).
			Where("account_id = ? AND id = ?", accountID, id).Exec(ctx)
		if err != nil {
			return fmt.Errorf("write the signature of transfer %s: %w", id, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return signed, nil
}

// Signature reads the signature of one of an account's intents, nil for none. It is in no other answer.
func (s *Store) Signature(ctx context.Context, accountID, id uuid.UUID) (signature []byte, err error) {
	err = s.db.NewSelect().Model((*TransferRow)(nil)).Column("signature").Where("account_id = ? AND id = ?", accountID, id).Scan(ctx, &signature)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrTransferNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read the signature of transfer %s: %w", id, err)
	}
	return signature, nil
}

// EraseSignatures erases a batch of the signatures that nobody needs any more, and returns their number; 0 means that none is left. Any number of
// cores may call it concurrently.
func (s *Store) EraseSignatures(ctx context.Context) (erased int, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	changed, err := postgres.RowsChanged(s.db.NewRaw(`UPDATE transfers SET signature = NULL WHERE (account_id, id) IN (
		SELECT account_id, id FROM transfers WHERE signature IS NOT NULL AND deadline < statement_timestamp() - ? * interval '1 second'
		ORDER BY deadline LIMIT ? FOR UPDATE SKIP LOCKED)`, SignatureRetention.Seconds(), ExpireBatch).Exec(ctx))
	if err != nil {
		return 0, fmt.Errorf("erase signatures: %w", err)
	}
	return int(changed), nil
}
