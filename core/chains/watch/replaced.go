package watch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/chains/evm"
	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/chains"
)

// replacedAttempt is an attempt whose nonce another transaction has used, with what is recorded of it unless it is replaced.
type replacedAttempt struct {
	chains.Followed
	pending chains.Observation
}

// replace marks attempts whose nonces other transactions have used, and looks for those transactions: they may have the effects of
// the intents, for example at another gas price. Attempts whose search is not over stay pending until the next poll.
func (l *loop) replace(ctx context.Context, v *view, replaced []replacedAttempt) (found []chains.Observation, failed []unreadableAttempt, err error) {
	var transfers []replacedAttempt
	for _, r := range replaced {
		switch {
		case v.to < v.head.Number: // its events may not have been read yet
			found = append(found, r.pending)
		case r.Intent.Type != transfer.Transfer: // an event would have reported an order that another transaction opened
			found = append(found, r.replaced(nil))
		default:
			transfers = append(transfers, r)
		}
	}
	searches, err := l.findNonces(ctx, v, transfers)
	if err != nil {
		return nil, nil, err
	}
	receipts, err := readSuccessors(ctx, v.provider, searches, transfers)
	if err != nil {
		return nil, nil, err
	}
	var mined []minedAttempt
	var succeeded []replacedAttempt
	for _, r := range transfers {
		s, receipt := searches[r.nonce()], receipts[r.nonce()]
		switch {
		case s == nil || !s.done: // the next poll goes on
			r.pending.DueAt = l.Store.Now()
			found = append(found, r.pending)
		case s.err != nil:
			failed = append(failed, unreadableAttempt{r.Followed, s.err})
			delete(l.searches, r.nonce())
		case receipt == nil:
			found = append(found, r.replaced(s.hash))
		default:
			succeeded = append(succeeded, r)
			mined = append(mined, minedAttempt{r.successor(receipt.TxHash), *receipt})
		}
	}
	evaluated, unseen, err := l.evaluate(ctx, v.provider, mined, v.assigned)
	if err != nil {
		return nil, nil, err
	}
	errs := make(map[chains.TransactionKey]error, len(unseen))
	for _, u := range unseen {
		errs[u.Key()] = u.err
	}
	for n, r := range succeeded {
		if err := errs[mined[n].Key()]; err != nil {
			failed = append(failed, unreadableAttempt{r.Followed, err})
			continue
		}
		found = append(found, r.replaced(&mined[n].Hash))
	}
	for _, o := range evaluated {
		if o.State == transfer.Mined {
			found = append(found, o)
		}
	}
	return found, failed, nil
}

func (r replacedAttempt) nonce() usedNonce { return usedNonce{*r.pending.Sender, r.pending.Nonce} }

// replaced is the attempt once the search for its successor is over, nil for one that was not found.
func (r replacedAttempt) replaced(successor *common.Hash) chains.Observation {
	o := r.pending
	if successor != nil {
		o.Found = successor.Hex()
	}
	o.State, o.DueAt, o.Confirmed = transfer.Replaced, time.Time{}, true
	return o
}

// successor is the transaction that took the attempt's place, as another attempt of the same intent.
func (r replacedAttempt) successor(hash common.Hash) chains.Followed {
	other := r.Followed
	other.Hash, other.Reported, other.SeenAt, other.Sender, other.Nonce = hash, false, time.Time{}, r.pending.Sender, r.pending.Nonce
	return other
}

const (
	// maxSearches bounds the searches that one poll continues, and searchCalls their calls. The rest waits for the next poll.
	maxSearches, searchCalls = 20, 100
	// maxKeptSearches bounds the searches whose results are kept for other attempts with the same nonce.
	maxKeptSearches = 1000
	// searchKept is how long a search is kept that no attempt waits for.
	searchKept = time.Hour
)

// usedNonce is a nonce that a transaction below the confirmed block has used.
type usedNonce struct {
	sender common.Address
	nonce  uint64
}

// nonceSearch finds the transaction that has used a nonce. It asks for the sender's transaction counts: at blocks in doubling
// distances below the confirmed block until the nonce was unused, and then by halves. Its bounds are kept between polls.
type nonceSearch struct {
	// start is the confirmed block of the search's first poll. The nonce was used in one of the blocks first to last.
	start, first, last uint64
	// step is the distance of the next block from start, 0 once a block is known at which the nonce was unused.
	step uint64
	done bool
	// hash is the transaction, nil if the node has pruned the states of old blocks; the client can report the transaction then.
	hash *common.Hash
	// err is why the search failed for another reason.
	err error
	// wantedAt is when an attempt last waited for the search.
	wantedAt time.Time
}

func newNonceSearch(confirmed uint64) *nonceSearch {
	return &nonceSearch{start: confirmed, last: confirmed, step: 1}
}

// next returns the block at which the transaction count is asked for next. more is false once the block of the transaction is
// known: it is last.
func (s *nonceSearch) next() (block uint64, more bool) {
	if s.step > s.start {
		s.step = 0 // the nonce may have been used in block 0
	}
	if s.step > 0 {
		return s.start - s.step, true
	}
	return s.first + (s.last-s.first)/2, s.first < s.last
}

// learn narrows the bounds: whether the nonce had been used by the block of next.
func (s *nonceSearch) learn(block uint64, used bool) {
	if used {
		s.last, s.step = block, 2*s.step
		return
	}
	s.first, s.step = block+1, 0
}

// findNonces continues the searches for the transactions that replaced attempts, each pair of sender and nonce once, in the order of
// the attempts. The accounts of due attempts take turns, and so do their searches.
func (l *loop) findNonces(ctx context.Context, v *view, replaced []replacedAttempt) (map[usedNonce]*nonceSearch, error) {
	if v.fork != nil {
		clear(l.searches)
	}
	maps.DeleteFunc(l.searches, func(_ usedNonce, s *nonceSearch) bool {
		return time.Since(s.wantedAt) > searchKept || s.done && len(l.searches) > maxKeptSearches
	})
	wanted := map[usedNonce]*nonceSearch{}
	var open []usedNonce
	for _, r := range replaced {
		nonce := r.nonce()
		if wanted[nonce] != nil {
			continue
		}
		s := l.searches[nonce]
		if (s == nil || !s.done) && len(open) == maxSearches {
			continue
		}
		if s == nil {
			block, _ := v.statesAt()
			s = newNonceSearch(block)
			l.searches[nonce] = s
		}
		if !s.done {
			open = append(open, nonce)
		}
		wanted[nonce], s.wantedAt = s, time.Now()
	}
	open, err := narrow(ctx, v.provider, wanted, open)
	if err != nil {
		return nil, err
	}
	return wanted, readNonceBlocks(ctx, v.provider, wanted, open)
}

// narrow asks for transaction counts until the blocks are known or the poll's calls are used up. It returns the nonces whose blocks
// are known.
func narrow(ctx context.Context, provider *rpc.Provider, searches map[usedNonce]*nonceSearch, open []usedNonce) (located []usedNonce, err error) {
	for calls := searchCalls; ; {
		open = slices.DeleteFunc(open, func(nonce usedNonce) bool {
			_, more := searches[nonce].next()
			if !more && !searches[nonce].done {
				located = append(located, nonce)
			}
			return !more || searches[nonce].done
		})
		round := open[:min(len(open), calls)]
		if len(round) == 0 {
			return located, nil
		}
		counts, err := rpc.FetchEach(ctx, provider, round, func(n usedNonce) *rpc.Call[uint64] {
			block, _ := searches[n].next()
			return rpc.TransactionCount(n.sender, rpc.Number(block))
		})
		if err != nil {
			return nil, err
		}
		for n, count := range counts {
			s := searches[round[n]]
			block, _ := s.next()
			switch {
			case errors.Is(count.Err, rpc.ErrMissing):
				s.done = true
			case count.Err != nil:
				s.done, s.err = true, count.Err
			default:
				s.learn(block, count.Value > round[n].nonce)
			}
		}
		calls -= len(round)
		open = slices.Concat(open[len(round):], round) // the others come first where the calls do not suffice for all
	}
}

// readNonceBlocks ends the searches whose blocks are known: it reads which transaction of the block is the sender's.
func readNonceBlocks(ctx context.Context, provider *rpc.Provider, searches map[usedNonce]*nonceSearch, located []usedNonce) error {
	blocks, err := rpc.FetchEach(ctx, provider, located, func(n usedNonce) *rpc.Call[[]evm.Transaction] {
		return rpc.BlockTransactions(searches[n].last, func(t evm.Transaction) bool { return t.From == n.sender && t.Nonce == n.nonce })
	})
	if err != nil {
		return err
	}
	for n, block := range blocks {
		s := searches[located[n]]
		s.done, s.err = true, block.Err
		for _, t := range block.Value {
			s.hash = &t.Hash
		}
	}
	return nil
}

// readSuccessors reads the receipts of the transactions that were found.
func readSuccessors(
	ctx context.Context, provider *rpc.Provider, searches map[usedNonce]*nonceSearch, replaced []replacedAttempt,
) (map[usedNonce]*evm.Receipt, error) {
	var found []usedNonce
	for nonce, s := range searches {
		if s.done && s.err == nil && s.hash != nil {
			found = append(found, nonce)
		}
	}
	answers, err := rpc.FetchEach(ctx, provider, found, func(nonce usedNonce) *rpc.Call[*evm.Receipt] {
		return rpc.Receipt(*searches[nonce].hash, func(log evm.Log) bool {
			return slices.ContainsFunc(replaced, func(r replacedAttempt) bool { return r.nonce() == nonce && r.Intent.Concerns(log) })
		})
	})
	if err != nil {
		return nil, err
	}
	receipts := make(map[usedNonce]*evm.Receipt, len(answers))
	for n, a := range answers {
		receipts[found[n]] = a.Value
		switch {
		case a.Err != nil:
			searches[found[n]].err = a.Err
		case a.Value == nil:
			searches[found[n]].err = errLags
		}
	}
	return receipts, nil
}
