package screening

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/transfer"
)

// window is how many intents one statement of Intents examines.
const window = 20_000

// Intent is an intent of an account that has an address on one of its sides.
type Intent struct {
	AccountID uuid.UUID
	ID        uuid.UUID
	Status    transfer.Status
	CreatedAt time.Time
	// Source and Destination are accounts without their chains.
	Source, Destination string
}

// Intents yields the intents of all accounts that have an address, in the form of EIP-55, on one of their sides. No index serves that
// question of an operator, as it would slow every request down: it reads all intents, in short statements by the primary key.
func (s *Store) Intents(ctx context.Context, address string, yield func(Intent) error) error {
	var account, id uuid.UUID
	for {
		var rows []struct {
			Intent
			Listed bool
		}
		err := s.db.NewRaw(`WITH examined AS (
				SELECT account_id, id, status, created_at, source_account AS source, destination_account AS destination
				FROM transfers WHERE (account_id, id) > (?0, ?1) ORDER BY account_id, id LIMIT ?3
			) SELECT *, ?2 IN (source, destination) AS listed FROM examined
			WHERE ?2 IN (source, destination) OR (account_id, id) = (SELECT account_id, id FROM examined ORDER BY account_id DESC, id DESC LIMIT 1)
			ORDER BY account_id, id`, account, id, address, window).Scan(ctx, &rows)
		if err != nil {
			return fmt.Errorf("read the intents of an address: %w", err)
		}
		if len(rows) == 0 {
			return nil
		}
		for _, r := range rows {
			if r.Listed {
				if err := yield(r.Intent); err != nil {
					return err
				}
			}
		}
		account, id = rows[len(rows)-1].AccountID, rows[len(rows)-1].ID
	}
}
