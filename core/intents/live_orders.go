package intents

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/pkg/caip"
)

const (
	// maxLiveOrders bounds the orders of LiveOrders, and liveScan the rows that each of its statements reads.
	maxLiveOrders, liveScan = 10_000, 20_000
)

// live are the conditions of the orders of which a chain may show an event next, each with the column that orders its index: those that can
// be opened at their source, and those that can be filled, claimed or refunded.
var live = []struct{ where, by string }{
	{"source_chain = ? AND status = 'created' AND type <> 'transfer'", "deadline"},
	{"source_chain = ? AND status IN ('submitted', 'failed') AND type <> 'transfer' AND " + watchedIntents, "deadline"},
	{"source_chain = ? AND status = 'confirmed' AND type <> 'transfer' AND refundable_at IS NULL AND " + watchedIntents, "expires"},
	{"destination_chain = ? AND status = 'confirmed' AND type <> 'transfer' AND refundable_at IS NULL AND " + watchedIntents, "deadline"},
}

// LiveOrders reads the ids of the newest orders of which a chain may show an event next, at most maxLiveOrders of them. Accounts take turns.
func (s *Store) LiveOrders(ctx context.Context, chain caip.ChainID) (ids []common.Hash, err error) {
	for _, orders := range live {
		var some [][]byte
		err := s.db.NewRaw(`SELECT order_id FROM (
			SELECT order_id, row_number() OVER (PARTITION BY account_id ORDER BY newest) AS turn FROM (
				SELECT order_id, account_id, row_number() OVER (ORDER BY `+orders.by+` DESC) AS newest FROM transfers
				WHERE `+orders.where+` ORDER BY `+orders.by+` DESC LIMIT ?) AS read) AS turns
			ORDER BY turn LIMIT ?`, chain.String(), liveScan, maxLiveOrders/len(live)).Scan(ctx, &some)
		if err != nil {
			return nil, fmt.Errorf("read the live orders of %s: %w", chain, err)
		}
		for _, id := range some {
			ids = append(ids, common.BytesToHash(id))
		}
	}
	slices.SortFunc(ids, common.Hash.Cmp)
	return slices.Compact(ids), nil
}
