package intents

import (
	"context"
	"fmt"
	"slices"
	"time"

	"intents.internal/pkg/caip"
)

// overdue are the conditions of the orders of which no opening was seen: of those that are created no transaction is known, and of the others at
// most attempts that may never be mined, were dropped, or have failed. Somebody else may have opened them, and a cancelled one its client all the
// same. Each has its index.
var overdue = []string{
	"status = 'created' AND type <> 'transfer'",
	"status IN ('submitted', 'failed') AND type <> 'transfer' AND " + watchedIntents + " AND " + noOpening,
	"status = 'cancelled' AND type <> 'transfer' AND " + noOpening,
}

// watchedIntents are those that the chain decides on; a simulated one is never due. Only rows that may have a simulated status are asked: a
// created one is not simulated, and neither is a cancelled one.
const watchedIntents = "NOT simulated"

const noOpening = "NOT EXISTS (SELECT FROM transactions AS t WHERE t.account_id = transfers.account_id AND t.transfer_id = transfers.id " +
	"AND t.role = 'open' AND t.state = 'mined')"

// OverdueOrders reads the swaps and bridges from a chain of which no opening is known and whose deadlines are after a time and up to another,
// by deadline, up to limit of them. They are few: what is up to the first time has been compared.
func (s *Store) OverdueOrders(ctx context.Context, chain caip.ChainID, after, until time.Time, limit int64) ([]Followed, error) {
	var rows []TransferRow
	for _, condition := range overdue {
		var some []TransferRow
		err := s.db.NewSelect().Model(&some).Where("deadline > ? AND deadline <= ?", after, until).
			Where("source_chain = ? AND "+condition, chain.String()).Order("deadline").Limit(limit).Scan(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the overdue orders of %s: %w", chain, err)
		}
		rows = append(rows, some...)
	}
	slices.SortStableFunc(rows, func(a, b TransferRow) int { return a.Deadline.Compare(b.Deadline) })
	var followed []Followed
	for _, intent := range readEach(s, rows[:min(int64(len(rows)), limit)], TransferRow.Intent) {
		followed = append(followed, Followed{Observation{AccountID: intent.AccountID, TransferID: intent.ID}, intent})
	}
	return followed, nil
}
