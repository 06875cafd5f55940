package watch

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

const (
	// ordersAtOnce is how many order ids one eth_getLogs names: go-ethereum takes 1,000.
	ordersAtOnce = 500
	// maxReadsByOrder bounds the calls for one flooded block.
	maxReadsByOrder = 64
)

// readFlooded reads a block whose settlers' events are more than the provider returns at once: anybody can have a settler emit events. It
// asks for the events of live orders by their ids, in halves where these are too many as well. What it leaves out, because one order alone has
// too many events or too many orders are live, is found by the comparison with the settlers.
func (l *loop) readFlooded(ctx context.Context, provider *rpc.Provider, filter rpc.LogFilter) (logs []evm.Log, block *evm.Block, err error) {
	orders, err := l.Store.LiveOrders(ctx, l.id)
	if err != nil {
		return nil, nil, ofStore(err)
	}
	_, block, err = rpc.ReadRange(ctx, provider, rpc.LogFilter{From: filter.From, To: filter.To}) // without addresses the block alone
	if err != nil {
		return nil, nil, err
	}
	rest := slices.Collect(slices.Chunk(orders, ordersAtOnce))
	for reads := 0; len(rest) > 0 && reads < maxReadsByOrder; reads++ {
		asked := rest[0]
		rest = rest[1:]
		filter.Topics = [][]common.Hash{transfer.SettlerTopics, asked}
		found, of, err := rpc.ReadRange(ctx, provider, filter)
		switch {
		case isFlooded(err) && len(asked) > 1: // the halves after those of others
			rest = append(rest, asked[:len(asked)/2], asked[len(asked)/2:])
		case isFlooded(err):
		case err != nil:
			return nil, nil, err
		case of.Hash != block.Hash:
			return nil, nil, errLags
		default:
			logs = append(logs, found...)
		}
	}
	l.metrics.floodedBlocks.WithLabelValues(l.metrics.chain).Inc()
	return logs, block, nil
}

// isFlooded reports whether logs are more than a provider returns at once.
func isFlooded(err error) bool {
	return errors.Is(err, rpc.ErrRange) || errors.Is(err, rpc.ErrTooLarge)
}
