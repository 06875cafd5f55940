package watch

import (
	"context"
	"sort"

	"intents.internal/core/rpc"
)

// findFirst finds where a chain that has never been read is read from: before the oldest order that may have been opened without a report,
// or else from the final block on.
func (l *loop) findFirst(ctx context.Context, v *view) (uint64, error) {
	created, ok, err := l.Store.OldestUnsent(ctx, l.id)
	if err != nil || !ok {
		return v.final, ofStore(err)
	}
	before := created.Add(-clockSkew)
	next := sort.Search(int(v.final), func(n int) bool { //nolint:gosec // a block number
		call := rpc.BlockByNumber(rpc.Number(uint64(n))) //nolint:gosec // not negative
		if err != nil {
			return true
		}
		if err = v.provider.Do(ctx, call); err != nil {
			return true
		}
		block, failed := call.Result()
		if err = failed; block == nil {
			return false // the node does not keep blocks as old as that
		}
		return block.Time.After(before)
	})
	return uint64(max(next, 1) - 1), err
}
