package watch

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/postgres"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// replace marks an attempt whose nonce another transaction has used, and looks for that transaction: it may have the effect of
// the intent, for example at another gas price.
func (l *loop) replace(ctx context.Context, v *view, a postgres.Followed, o postgres.Observation) ([]postgres.Observation, error) {
	if v.to < v.head.Number {
		return []postgres.Observation{o}, nil // its events may not have been read yet
	}
	o.State, o.DueAt, o.Confirmed = transfer.Replaced, time.Time{}, true
	if a.Intent.Type != transfer.Transfer {
		return []postgres.Observation{o}, nil // an event would have reported an order that another transaction opened
	}
	successor, err := l.findByNonce(ctx, v, *o.Sender, o.Nonce)
	if err != nil || successor == nil {
		return []postgres.Observation{o}, err
	}
	other := a
	other.Hash, other.Reported, other.SeenAt, other.Sender, other.Nonce = successor.TxHash, false, time.Time{}, o.Sender, o.Nonce
	evaluated, err := l.evaluate(ctx, v, []minedAttempt{{other, *successor}})
	if err != nil {
		return nil, err
	}
	if evaluated[0].State != transfer.Mined {
		return []postgres.Observation{o}, nil
	}
	return []postgres.Observation{o, evaluated[0]}, nil
}

// findByNonce finds the transaction in which a sender used a nonce, below the confirmed block. It returns nil if the node has
// pruned the states of old blocks; the client can report the transaction then.
func (l *loop) findByNonce(ctx context.Context, v *view, sender common.Address, nonce uint64) (*evm.Receipt, error) {
	block, err := l.findBlock(ctx, v, sender, nonce)
	if err != nil {
		if errors.Is(err, rpc.ErrMissing) {
			return nil, nil
		}
		return nil, err
	}
	transactions, err := rpc.Ask(ctx, v.provider, rpc.BlockTransactions(block))
	if err != nil {
		return nil, err
	}
	for _, t := range transactions {
		if t.From == sender && t.Nonce == nonce {
			return rpc.Ask(ctx, v.provider, rpc.Receipt(t.Hash))
		}
	}
	return nil, nil
}

// findBlock finds the block in which a nonce was used, by a binary search between the confirmed block and an earlier one at which
// it was unused.
func (l *loop) findBlock(ctx context.Context, v *view, sender common.Address, nonce uint64) (uint64, error) {
	used := func(block uint64) (bool, error) {
		count, err := rpc.Ask(ctx, v.provider, rpc.TransactionCount(sender, rpc.Number(block)))
		return count > nonce, err
	}
	after, before := v.confirmed, uint64(0) // used at after, not before the block 0
	for step := uint64(1); step <= v.confirmed; step *= 2 {
		ok, err := used(v.confirmed - step)
		if err != nil {
			return 0, err
		}
		if !ok {
			before = v.confirmed - step + 1
			break
		}
		after = v.confirmed - step
	}
	for before < after {
		middle := before + (after-before)/2
		ok, err := used(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			after = middle
		} else {
			before = middle + 1
		}
	}
	return after, nil
}
