package watch

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/postgres"
	"intents.internal/core/rpc"
)

// alone is how long the watcher waits for a second provider before it relies on one.
const alone = time.Minute

// confirm lets transactions count that are deep enough, once a second provider shows them in the same block with the same result. Where
// a chain has one provider, it shows them a second time itself.
func (l *loop) confirm(ctx context.Context, v *view) error {
	progress := v.next()
	for {
		deep, err := l.Store.UnconfirmedTransactions(ctx, l.id, progress, writeBatch)
		if err != nil || len(deep) == 0 {
			return ofStore(err)
		}
		confirmed, gone, err := l.secondOpinion(ctx, v, deep)
		if err != nil {
			return err
		}
		if len(confirmed)+len(gone) > 0 {
			if _, err := l.Store.WriteChain(ctx, l.lease, postgres.ChainWrite{Seen: confirmed, Gone: gone}); err != nil {
				return ofStore(err)
			}
		}
		if len(confirmed)+len(gone) < writeBatch {
			return nil // the rest waits for the next poll
		}
	}
}

// secondOpinion compares transactions with the receipts of another provider. Those whose block has changed are gone; where the two
// providers disagree, nothing is concluded.
func (l *loop) secondOpinion(ctx context.Context, v *view, deep []postgres.Followed) (confirmed, gone []postgres.Observation, err error) {
	judge, receipts := l.judgeOf(ctx, v, deep)
	if judge == nil {
		return nil, nil, nil
	}
	var doubted []postgres.Followed
	missing := map[common.Hash]bool{} // at the judge, which may lag behind the block
	for n, f := range deep {
		if receipts[n] != nil && f.Intent.Stands(f.Transaction, *receipts[n]) {
			f.Confirmed = true
			confirmed = append(confirmed, f.Observation)
			continue
		}
		doubted = append(doubted, f)
		missing[f.Hash] = receipts[n] == nil
	}
	if len(doubted) == 0 {
		return confirmed, nil, nil
	}
	stand, err := blocksStand(ctx, v.provider, doubted)
	if err != nil {
		return nil, nil, err
	}
	for n, f := range doubted {
		switch {
		case !stand[n]:
			gone = append(gone, f.Observation)
		case missing[f.Hash]:
			l.metrics.lags(judge)
		default:
			l.disagree(judge, "the receipt of a transaction is another one", f.Block.Number)
		}
	}
	return confirmed, gone, nil
}

// blocksStand compares the blocks of transactions with the chain as a provider shows it. A transaction is gone only if its block is: a
// provider that shows the block and no receipt is no proof.
func blocksStand(ctx context.Context, provider *rpc.Provider, transactions []postgres.Followed) ([]bool, error) {
	calls := make([]*rpc.Call[*evm.Block], len(transactions))
	requests := make([]rpc.Request, len(transactions))
	for n, t := range transactions {
		calls[n] = rpc.BlockByNumber(rpc.Number(t.Block.Number))
		requests[n] = calls[n]
	}
	if err := provider.Do(ctx, requests...); err != nil {
		return nil, err
	}
	stand := make([]bool, len(calls))
	for n, call := range calls {
		block, err := call.Result()
		if err != nil {
			return nil, err
		}
		stand[n] = block == nil || block.Hash == transactions[n].Block.Hash
	}
	return stand, nil
}

// judgeOf asks the first other provider that answers. While all others are down it gives nil for a minute and then the provider of the
// poll, which is counted.
func (l *loop) judgeOf(ctx context.Context, v *view, deep []postgres.Followed) (*rpc.Provider, []*evm.Receipt) {
	others := l.chain.Other(v.provider)
	for _, other := range others {
		if receipts, err := receiptsOf(ctx, other, deep); err == nil {
			l.othersDownSince = time.Time{}
			return other, receipts
		}
	}
	if len(l.chain.All()) > 1 {
		if l.othersDownSince.IsZero() {
			l.othersDownSince = time.Now()
		}
		if time.Since(l.othersDownSince) < alone {
			return nil, nil
		}
		l.metrics.confirmedAlone(len(deep))
	}
	receipts, err := receiptsOf(ctx, v.provider, deep)
	if err != nil {
		return nil, nil
	}
	return v.provider, receipts
}

func receiptsOf(ctx context.Context, provider *rpc.Provider, transactions []postgres.Followed) ([]*evm.Receipt, error) {
	calls := make([]*rpc.Call[*evm.Receipt], len(transactions))
	requests := make([]rpc.Request, len(transactions))
	for n, t := range transactions {
		calls[n] = rpc.Receipt(t.Hash)
		requests[n] = calls[n]
	}
	if err := provider.Do(ctx, requests...); err != nil {
		return nil, err
	}
	receipts := make([]*evm.Receipt, len(calls))
	for n, call := range calls {
		var err error
		if receipts[n], err = call.Result(); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}
