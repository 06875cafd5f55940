package watch

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/intents"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

const (
	// comparedAtOnce is how many transactions one batch of calls compares. comparedBatches is how many batches a poll sends to each
	// provider.
	comparedAtOnce, comparedBatches = 500, 4
)

// confirm confirms transactions that are deep enough, once two hosts show them in the same block with the same result, and takes over
// the result that two hosts show. What they disagree about is read from all of them again later, and less and less often.
func (l *loop) confirm(ctx context.Context, v *view) error {
	progress, began := v.next(), l.Store.Now()
	for range comparedBatches {
		deep, err := l.Store.UnconfirmedTransactions(ctx, l.id, progress, began, comparedAtOnce)
		if err != nil || len(deep) == 0 {
			return ofStore(err)
		}
		c, err := l.compare(ctx, v, deep)
		if err != nil || !c.answered {
			return err
		}
		if len(c.seen)+len(c.gone) > 0 {
			if _, err := l.writeChain(ctx, intents.ChainWrite{Seen: c.seen, Gone: c.gone}); err != nil {
				return ofStore(err)
			}
		}
		if err := l.Store.DisputeTransactions(ctx, l.lease, c.disputed); err != nil {
			return ofStore(err)
		}
	}
	return nil
}

// effect is what a transaction did, and where. The zero value is that it is in no block.
type effect struct {
	state transfer.State
	block transfer.Block
}

func effectOf(o intents.Observation) (e effect) {
	if e.state = o.State; o.Block != nil {
		e.block = *o.Block
	}
	return e
}

// compared is a transaction with the log indexes of the effects that providers show.
type compared struct {
	intents.Followed
	indexes map[effect]int64
}

// comparison is the result of comparing transactions.
type comparison struct {
	seen, gone, disputed []intents.Observation
	// answered is false if no provider was there to compare with.
	answered bool
}

// compare compares recorded transactions with what all hosts show of them now.
func (l *loop) compare(ctx context.Context, v *view, deep []intents.Followed) (c comparison, err error) {
	items := make([]*compared, len(deep))
	for n, f := range deep {
		items[n] = &compared{f, map[effect]int64{}}
	}
	verdicts, err := testify(ctx, l.hosts, v.provider, items, func(ctx context.Context, p *rpc.Provider, asked []*compared) ([]shown[effect], error) {
		return l.effects(ctx, v, p, asked, nil)
	})
	if err != nil {
		return c, err
	}
	alone := 0
	for n, item := range items {
		of, o := verdicts[n], item.Observation
		recorded := effectOf(o)
		fact, certain := of.decided()
		if !certain && o.State == transfer.Mined && of.believed(recorded) {
			fact, certain = recorded, true
			alone++
		}
		c.answered = c.answered || certain || of.alone || l.othersDownSince.IsZero()
		switch {
		case certain && fact == effect{}:
			c.gone = append(c.gone, o)
		case certain:
			c.seen = append(c.seen, item.as(fact, v))
		case c.answered:
			l.doubt(v, item, of)
			c.disputed = append(c.disputed, o)
		}
	}
	if alone > 0 {
		l.metrics.confirmedAlone(alone)
	}
	return c, nil
}

// as is the transaction with an effect that is certain.
func (c *compared) as(e effect, v *view) intents.Observation {
	o := c.Observation
	deep := v.confirmed
	if o.Role != transfer.RoleSend && o.Role != transfer.RoleOpen {
		deep = v.final
	}
	if e != effectOf(o) {
		o.State, o.Block, o.LogIndex = e.state, &e.block, c.indexes[e]
	}
	o.Confirmed, o.Disputed = e.block.Number <= deep, false
	return o
}

// doubt counts why a transaction is not confirmed: a provider lags, or shows something else.
func (l *loop) doubt(v *view, item *compared, of verdict[effect]) {
	if len(of.facts) == of.count(effectOf(item.Observation)) {
		for _, other := range l.chain.Other(v.provider) {
			l.metrics.lags(other)
		}
		return
	}
	l.disagree(v.provider, "the receipt of a transaction is another one", effectOf(item.Observation).block.Number)
}

// effects is what a provider shows that transactions did. One that shows the block of a transaction with it and has no receipt, or does
// not have the block, cannot tell, nor can one without the receipt of a transaction that is in no block. assigned are effects that other
// intents have.
func (l *loop) effects(
	ctx context.Context, v *view, provider *rpc.Provider, items []*compared, assigned map[intents.Payment][]int64,
) ([]shown[effect], error) {
	followed := make([]intents.Followed, len(items))
	for n, item := range items {
		followed[n] = item.Followed
	}
	receipts, err := l.receipts(ctx, v, provider, followed)
	if err != nil {
		return nil, err
	}
	answers := make([]shown[effect], len(items))
	var mined []minedAttempt
	var unseen []intents.Followed
	places := map[intents.TransactionKey]int{}
	for n, f := range followed {
		receipt := receipts[n].Value
		places[f.Key()] = n
		switch {
		case receipts[n].Err != nil:
		case receipt == nil && f.Block == nil:
		case receipt == nil:
			unseen = append(unseen, f)
		case f.Role == transfer.RoleSend || f.Role == transfer.RoleOpen:
			mined = append(mined, minedAttempt{f, *receipt})
		default:
			answers[n] = eventEffect(items[n], *receipt)
		}
	}
	others := make(map[intents.Payment][]int64, len(assigned))
	for payment, indexes := range assigned {
		others[payment] = slices.Clone(indexes)
	}
	found, _, err := l.evaluate(ctx, provider, mined, others)
	if err != nil {
		return nil, err
	}
	for _, o := range found {
		n := places[o.Key()]
		answers[n] = shown[effect]{effectOf(o), true}
		items[n].indexes[effectOf(o)] = o.LogIndex
		if !o.Reported && o.Role == transfer.RoleOpen && o.State != transfer.Mined && items[n].State == transfer.Mined {
			answers[n].fact = effect{} // an event that another transaction emitted, or none
		}
	}
	blocks, err := blocksOf(ctx, provider, unseen)
	if err != nil {
		return nil, err
	}
	for _, f := range unseen {
		block := blocks[f.Block.Number]
		answers[places[f.Key()]].known = block != nil && (block.Hash != f.Block.Hash || !slices.Contains(block.Transactions, f.Hash))
	}
	return answers, nil
}

// eventEffect is the effect of a settler's event by a receipt, whatever the provider's numbers of its logs are.
func eventEffect(item *compared, r evm.Receipt) shown[effect] {
	n := slices.IndexFunc(r.Logs, func(log evm.Log) bool {
		t, ok := item.Intent.MatchLog(item.Chain, log)
		return ok && t.Role == item.Role
	})
	if n < 0 || !r.Succeeded {
		return shown[effect]{known: true}
	}
	e := effect{transfer.Mined, transfer.Block{Number: r.BlockNumber, Hash: r.BlockHash}}
	item.indexes[e] = int64(r.Logs[n].Index) //nolint:gosec // an index in a block
	return shown[effect]{e, true}
}

// hashesAt are the hashes of the blocks that a provider has at the numbers of known ones.
func hashesAt(ctx context.Context, provider *rpc.Provider, known []transfer.Block) ([]shown[common.Hash], error) {
	blocks, err := blocksAt(ctx, provider, known)
	if err != nil {
		return nil, err
	}
	answers := make([]shown[common.Hash], len(known))
	for n, block := range blocks {
		if block != nil {
			answers[n] = shown[common.Hash]{block.Hash, true}
		}
	}
	return answers, nil
}
