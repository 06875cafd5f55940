package watch

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// anchorBatch is how many known blocks are compared at once.
const anchorBatch = 50

// findFork finds the newest known block that is still on the chain. If a final block has changed, the chain must be stopped.
func (l *loop) findFork(ctx context.Context, v *view) error {
	for highest := min(v.before.Head, v.head.Number); ; {
		anchors, err := l.Watched.Anchors(ctx, l.id, highest, anchorBatch)
		if err != nil {
			return ofStore(err)
		}
		blocks, err := blocksAt(ctx, v.provider, anchors)
		if err != nil {
			return err
		}
		for n, a := range anchors {
			if blocks[n] != nil && blocks[n].Hash == a.Hash {
				of, err := l.hashOf(ctx, v, a, hashesAt)
				if err == nil && !of.believed(a.Hash) {
					err = l.undecided(v, of, a)
				}
				if err != nil {
					return err
				}
				v.fork, v.forkTime = &anchors[n].Number, blocks[n].Time
				return l.compareFinal(ctx, v)
			}
			if a.Number <= min(v.before.Final, v.before.Cursor) { // two hosts have shown it
				return l.stop(ctx, v, a)
			}
		}
		if len(anchors) < anchorBatch {
			// The chain is younger than its final depth.
			fork := v.before.Cursor
			if len(anchors) > 0 {
				fork = min(fork, anchors[len(anchors)-1].Number-1)
			}
			v.fork = &fork
			return nil
		}
		highest = anchors[len(anchors)-1].Number - 1
	}
}

// blocksAt reads the current blocks at the numbers of known ones; nil for those that the provider does not have.
func blocksAt(ctx context.Context, provider *rpc.Provider, known []transfer.Block) ([]*evm.Block, error) {
	return rpc.FetchAll(ctx, provider, known, func(b transfer.Block) *rpc.Call[*evm.Block] { return rpc.BlockByNumber(rpc.Number(b.Number)) })
}

// stop stops the chain if it is certain that a final block has another hash now, at providers whose chain id is read with the block. A lag is
// no reason, and no provider stops a chain alone that has others, however long these are silent.
func (l *loop) stop(ctx context.Context, v *view, b transfer.Block) error {
	of, err := l.hashOf(ctx, v, b, func(ctx context.Context, p *rpc.Provider, known []transfer.Block) ([]shown[common.Hash], error) {
		block, err := rpc.ReadIdentified(ctx, p, known[0].Number)
		if err != nil || block == nil {
			return make([]shown[common.Hash], 1), err
		}
		return []shown[common.Hash]{{block.Hash, true}}, nil
	})
	if err != nil {
		return err
	}
	if hash, certain := of.decided(); !certain || hash == b.Hash {
		return l.undecided(v, of, b)
	}
	v.changed = fmt.Sprintf("block %d was final with hash %s and has another hash now", b.Number, b.Hash)
	return nil
}

// compareFinal compares the final blocks above the fork that have confirmed an intent. The fork may be far below the final block
// if no poll stored the blocks between. Only blocks with a stored hash can be compared.
func (l *loop) compareFinal(ctx context.Context, v *view) error {
	if *v.fork >= v.before.Final {
		return nil
	}
	known, err := l.Store.ConfirmedBetween(ctx, l.id, *v.fork, v.before.Final)
	if err != nil {
		return ofStore(err)
	}
	blocks, err := blocksAt(ctx, v.provider, known)
	if err != nil {
		return err
	}
	for n, b := range known {
		if blocks[n] == nil {
			return errLags
		}
		if blocks[n].Hash != b.Hash {
			return l.stop(ctx, v, b)
		}
	}
	return nil
}
