package watch

import (
	"context"
	"time"

	"intents.internal/core/chains/evm"
	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/chains"
)

// singleProviderAfter is how long the watcher waits for a second provider before it relies on one.
const singleProviderAfter = time.Minute

const (
	// comparedAtOnce is how many transactions one batch of calls compares. comparedBatches is how many batches a poll sends to each
	// provider.
	comparedAtOnce, comparedBatches = 500, 4
)

// confirm confirms transactions that are deep enough, once a second provider shows them in the same block with the same result.
// If a chain has one provider, that provider must show them twice. Those that are not confirmed are compared again later, and
// less and less often.
func (l *loop) confirm(ctx context.Context, v *view) error {
	progress, began := v.next(), l.Store.Now()
	for range comparedBatches {
		deep, err := l.Store.UnconfirmedTransactions(ctx, l.id, progress, began, comparedAtOnce)
		if err != nil || len(deep) == 0 {
			return ofStore(err)
		}
		compared, err := l.crossCheckReceipts(ctx, v, deep)
		if err != nil || !compared.answered {
			return err
		}
		if len(compared.confirmed)+len(compared.gone) > 0 {
			if _, err := l.Store.WriteChain(ctx, l.lease, chains.ChainWrite{Seen: compared.confirmed, Gone: compared.gone}); err != nil {
				return ofStore(err)
			}
		}
		if err := l.Store.DisputeTransactions(ctx, l.lease, compared.disputed); err != nil {
			return ofStore(err)
		}
	}
	return nil
}

// comparison is what other providers show of transactions.
type comparison struct {
	confirmed, gone, disputed []chains.Observation
	// answered is false if no provider was there to compare with.
	answered bool
}

// crossCheckReceipts compares transactions with the receipts of other providers; one that agrees is enough. Transactions whose
// block has changed are gone. If providers disagree and none agrees, nothing is decided.
func (l *loop) crossCheckReceipts(ctx context.Context, v *view, deep []chains.Followed) (c comparison, err error) {
	var discrepancies []discrepancy
	for _, other := range l.chain.Other(v.provider) {
		if len(deep) == 0 {
			break
		}
		receipts, failure := l.answeredReceipts(ctx, v, other, deep)
		if failure != nil {
			continue
		}
		c.answered = true
		c.confirmed, deep, discrepancies = compare(other, deep, receipts, c.confirmed, discrepancies)
	}
	switch {
	case c.answered:
		l.othersDownSince = time.Time{}
	case l.allowSingleProvider(v.provider, len(deep)):
		receipts, failure := l.answeredReceipts(ctx, v, v.provider, deep)
		if failure != nil {
			return c, failure
		}
		c.answered = true
		c.confirmed, deep, discrepancies = compare(v.provider, deep, receipts, c.confirmed, discrepancies)
	default:
		return c, nil
	}
	onChain, err := blocksOnChain(ctx, v.provider, deep)
	if err != nil {
		return c, err
	}
	for _, f := range deep {
		if onChain[*f.Block] {
			c.disputed = append(c.disputed, f.Observation)
		} else {
			c.gone = append(c.gone, f.Observation)
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
	return c, nil
}

// answeredReceipts reads receipts; nil for those that the provider does not have or cannot show. If it can show none, that is its
// error.
func (l *loop) answeredReceipts(ctx context.Context, v *view, provider *rpc.Provider, transactions []chains.Followed) ([]*evm.Receipt, error) {
	answers, err := l.receipts(ctx, v, provider, transactions)
	if err != nil {
		return nil, err
	}
	receipts := make([]*evm.Receipt, len(answers))
	failed := 0
	for n, answer := range answers {
		if receipts[n] = answer.Value; answer.Err != nil {
			err = answer.Err
			failed++
		}
	}
	if failed < len(answers) {
		err = nil
	}
	return receipts, err
}

// discrepancy is a transaction that a provider shows differently: it has another receipt, or none, because it may lag behind the
// block.
type discrepancy struct {
	chains.Followed
	by      *rpc.Provider
	missing bool
}

// compare moves the transactions whose receipts agree to confirmed and leaves the others.
func compare(
	by *rpc.Provider, deep []chains.Followed, receipts []*evm.Receipt, confirmed []chains.Observation, discrepancies []discrepancy,
) ([]chains.Observation, []chains.Followed, []discrepancy) {
	var left []chains.Followed
	for n, f := range deep {
		if receipts[n] != nil && f.Intent.MatchesReceipt(f.Transaction, *receipts[n]) {
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
func blocksOnChain(ctx context.Context, provider *rpc.Provider, transactions []chains.Followed) (map[transfer.Block]bool, error) {
	blocks, err := rpc.FetchAll(ctx, provider, transactions, func(f chains.Followed) *rpc.Call[*evm.Block] {
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
