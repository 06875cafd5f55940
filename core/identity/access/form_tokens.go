package access

import (
	"context"
	"fmt"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

// formTokenLifetime is how long a used form token is stored, at least as long as its session.
const formTokenLifetime = account.SessionLifetime

// UseFormToken uses the one-time token of a form, identified by its SHA-256, or returns account.ErrFormUsed if it was used
// before. The zero hash means no form and can be used any number of times. A concurrent second use waits until the first
// transaction has ended, and succeeds if that is rolled back. Used tokens are stored with the nonces until they expire.
func (tx Tx) UseFormToken(ctx context.Context, hash [32]byte, now time.Time) error {
	if hash == [32]byte{} {
		return nil
	}
	result, err := tx.db.NewRaw("INSERT INTO nonces (hash, expires_at) VALUES ($1, ?) ON CONFLICT DO NOTHING", now.Add(formTokenLifetime)).
		Conn(postgres.Bind(tx.db.Tx, hash[:])).Exec(ctx)
	if err != nil {
		return fmt.Errorf("use a form's token up: %w", err)
	}
	added, err := result.RowsAffected()
	if err == nil && added == 0 {
		return account.ErrFormUsed
	}
	return err
}
