package feed

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// maxTransferEvents is how many events of one intent are read at most. An intent has about five, and one more for each report, reorganization
// and change of its labels.
const maxTransferEvents = 1000

// TransferEvents reads the newest events of one of an account's intents, oldest first, as far back as they are kept. They have the ids and
// bodies of the feed, and no Position: an event that has none yet is among them.
func (s *Store) TransferEvents(ctx context.Context, accountID, transferID uuid.UUID) ([]Event, error) {
	var rows []feedRow
	err := s.db.NewRaw(`SELECT (`+eventIDAt+`) AS id, taken.account_id, transfers.environment, `+eventTypeOf+` AS type, taken.sequence,
			taken.occurred_at, taken.from_status, taken.to_status, taken.hash, taken.failure, taken.tx_hash, taken.block_number, taken.found, taken.simulated,
			`+intentColumns+`
		FROM events AS taken JOIN transfers ON transfers.account_id = taken.account_id AND transfers.id = taken.transfer_id
		`+laterUpdate("taken.sequence")+`
		WHERE taken.account_id = ?0 AND taken.transfer_id = ?1 ORDER BY taken.id DESC LIMIT ?2`, accountID, transferID, maxTransferEvents).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the events of transfer %s: %w", transferID, err)
	}
	slices.Reverse(rows)
	events := make([]Event, len(rows))
	for n, row := range rows {
		if events[n], err = row.event(); err != nil {
			return nil, fmt.Errorf("read event %d of transfer %s: %w", row.Sequence, transferID, err)
		}
	}
	return events, nil
}
