package watch

import (
	"context"
	"sort"

	"intents.internal/core/chains/evm"
	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/transfer"
)

// findFirst returns the block from which a new chain is read: before the oldest order that may have been opened without a report,
// otherwise the final block.
func (l *loop) findFirst(ctx context.Context, v *view) (uint64, error) {
	created, ok, err := l.Store.OldestUnsent(ctx, l.id)
	if err != nil || !ok {
		return v.final, ofStore(err)
	}
	before := created.Add(-transfer.ClockSkew)
	next := sort.Search(int(v.final), func(n int) bool { //nolint:gosec // a block number
		if err != nil {
			return true
		}
		var block *evm.Block
		block, err = rpc.Ask(ctx, v.provider, rpc.BlockByNumber(rpc.Number(uint64(n)))) //nolint:gosec // not negative
		// A node that has pruned old blocks returns none.
		return err != nil || block != nil && block.Time.After(before)
	})
	return uint64(max(next, 1) - 1), err
}
