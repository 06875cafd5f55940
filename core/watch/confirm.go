package watch

import (
	"context"
	"time"

	"intents.internal/core/evm"
	"intents.internal/core/postgres"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// singleProviderAfter is how long the watcher waits for a second provider before it relies on one.
const singleProviderAfter = time.Minute

// confirm confirms transactions that are deep enough, once a second provider shows them in the same block with the same result.
// If a chain has one provider, that provider must show them twice.
func (l *loop) confirm(ctx context.Context, v *view) error {
	progress := v.next()
	for {
		deep, err := l.Store.UnconfirmedTransactions(ctx, l.id, progress, writeBatch)
		if err != nil || len(deep) == 0 {
			return ofStore(err)
		}
		confirmed, gone, err := l.crossCheckReceipts(ctx, v, deep)
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

// crossCheckReceipts compares transactions with the receipts of other providers; one that agrees is enough. Transactions whose
// block has changed are gone. If providers disagree and none agrees, nothing is decided.
func (l *loop) crossCheckReceipts(ctx context.Context, v *view, deep []postgres.Followed) (confirmed, gone []postgres.Observation, err error) {
	responded := false
	var discrepancies []discrepancy
	for _, other := range l.chain.Other(v.provider) {
		if len(deep) == 0 {
			break
		}
		receipts, failure := receiptsOf(ctx, other, deep)
		if failure != nil {
			continue
		}
		responded = true
		confirmed, deep, discrepancies = compare(other, deep, receipts, confirmed, discrepancies)
	}
	switch {
	case responded:
		l.othersDownSince = time.Time{}
	case l.allowSingleProvider(v.provider, len(deep)):
		receipts, failure := receiptsOf(ctx, v.provider, deep)
		if failure != nil {
			return nil, nil, failure
		}
		confirmed, deep, discrepancies = compare(v.provider, deep, receipts, confirmed, discrepancies)
	default:
		return nil, nil, nil
	}
	onChain, err := blocksOnChain(ctx, v.provider, deep)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range deep {
		if !onChain[*f.Block] {
			gone = append(gone, f.Observation)
		}
	}
	for _, d := range discrepancies {
		switch current, open := onChain[*d.Block]; {
		case !current || !open: // it is gone, or another provider agrees
		case d.missing:
			l.metrics.lags(d.by)
		default:
			l.disagree(d.by, "the receipt of a transaction is another one", d.Block.Number)
		}
	}
	return confirmed, gone, nil
}

// discrepancy is a transaction that a provider shows differently: it has another receipt, or none, because it may lag behind the
// block.
type discrepancy struct {
	postgres.Followed
	by      *rpc.Provider
	missing bool
}

// compare moves the transactions whose receipts agree to confirmed and leaves the others.
func compare(
	by *rpc.Provider, deep []postgres.Followed, receipts []*evm.Receipt, confirmed []postgres.Observation, discrepancies []discrepancy,
) ([]postgres.Observation, []postgres.Followed, []discrepancy) {
	var left []postgres.Followed
	for n, f := range deep {
		if receipts[n] != nil && f.Intent.Stands(f.Transaction, *receipts[n]) {
			f.Confirmed = true
			confirmed = append(confirmed, f.Observation)
			continue
		}
		left = append(left, f)
		discrepancies = append(discrepancies, discrepancy{f, by, receipts[n] == nil})
	}
	return confirmed, left, discrepancies
}

// blocksOnChain reports which blocks of transactions are still on the chain that a provider shows. A transaction is gone only if
// its block is: a provider that shows the block and no receipt is no proof.
func blocksOnChain(ctx context.Context, provider *rpc.Provider, transactions []postgres.Followed) (map[transfer.Block]bool, error) {
	blocks, err := rpc.AskEach(ctx, provider, transactions, func(f postgres.Followed) *rpc.Call[*evm.Block] {
		return rpc.BlockByNumber(rpc.Number(f.Block.Number))
	})
	onChain := make(map[transfer.Block]bool, len(blocks))
	for n, block := range blocks {
		known := *transactions[n].Block
		onChain[known] = block == nil || block.Hash == known.Hash
	}
	return onChain, err
}

// allowSingleProvider reports whether a provider may confirm its own result: if the chain has no other, or all others have been
// down for a minute.
func (l *loop) allowSingleProvider(p *rpc.Provider, transactions int) bool {
	if !l.chain.HasOther(p) {
		return true
	}
	if l.unanswered(p) != nil {
		return false
	}
	l.metrics.confirmedAlone(transactions)
	return true
}

// unanswered is called when no provider but p has answered. It returns an error if the chain has others and less than a minute
// has passed since one of them answered.
func (l *loop) unanswered(p *rpc.Provider) error {
	if !l.chain.HasOther(p) {
		return nil
	}
	if l.othersDownSince.IsZero() {
		l.othersDownSince = time.Now()
	}
	if time.Since(l.othersDownSince) < singleProviderAfter {
		return errUnanswered
	}
	return nil
}

func receiptsOf(ctx context.Context, provider *rpc.Provider, transactions []postgres.Followed) ([]*evm.Receipt, error) {
	return rpc.AskEach(ctx, provider, transactions, func(f postgres.Followed) *rpc.Call[*evm.Receipt] { return rpc.Receipt(f.Hash) })
}
