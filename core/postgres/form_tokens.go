package postgres

import (
	"context"
	"fmt"
	"time"

	"intents.internal/core/account"
)

// UseFormToken uses the one-time token of a form, known by its SHA-256, or returns account.ErrFormUsed if it was used before. A
// second use waits until the transaction of the first has ended, and succeeds if that is rolled back. Used tokens are kept among
// the nonces until they expire.
func (tx Tx) UseFormToken(ctx context.Context, hash [32]byte, expiresAt time.Time) error {
	result, err := tx.db.NewRaw("INSERT INTO nonces (hash, expires_at) VALUES ($1, ?) ON CONFLICT DO NOTHING", expiresAt).
		Conn(bind(tx.db.Tx, hash[:])).Exec(ctx)
	if err != nil {
		return fmt.Errorf("use a form's token up: %w", err)
	}
	added, err := result.RowsAffected()
	if err == nil && added == 0 {
		return account.ErrFormUsed
	}
	return err
}
