package watch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/intents"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// replacedAttempt is an attempt whose nonce another transaction has used, with what is recorded of it unless it is replaced.
type replacedAttempt struct {
	intents.Followed
	pending intents.Observation
}

// replace marks attempts whose nonces other transactions have used, and looks for those transactions: they may have the effects of
// the intents, for example at another gas price. Attempts whose search is not over stay pending until the next poll.
func (l *loop) replace(ctx context.Context, v *view, replaced []replacedAttempt) (found []intents.Observation, failed []unreadableAttempt, err error) {
	if v.to < v.head.Number { // the events of the transactions may not have been read yet
		for _, r := range replaced {
			found = append(found, r.pending)
		}
		return found, nil, nil
	}
	searches, err := l.findNonces(ctx, v, replaced)
	if err != nil {
		return nil, nil, err
	}
	var searched []replacedAttempt
	var successors []*compared
	for _, r := range replaced {
		switch s := searches[r.nonce()]; {
		case s == nil || !s.done: // the next poll goes on
			r.pending.DueAt = l.Store.Now()
			found = append(found, r.pending)
		case s.err != nil:
			failed = append(failed, unreadableAttempt{r.Followed, s.err})
			delete(l.searches, r.nonce())
		case s.hash == common.Hash{}:
			found = append(found, r.replaced(""))
		default:
			searched, successors = append(searched, r), append(successors, &compared{r.successor(s.hash), map[effect]int64{}})
		}
	}
	verdicts, err := testify(ctx, l.hosts, v.provider, successors, func(ctx context.Context, p *rpc.Provider, asked []*compared) ([]shown[effect], error) {
		return l.effects(ctx, v, p, asked, v.assigned)
	})
	if err != nil {
		return nil, nil, err
	}
	for n, r := range searched {
		successor := successors[n]
		fact, certain := verdicts[n].decided()
		if !certain { // one host alone ends no attempt
			failed = append(failed, unreadableAttempt{r.Followed, errUnanswered})
			continue
		}
		found = append(found, r.replaced(successor.Hash.Hex()))
		if fact.state == transfer.Mined {
			payment := intents.Payment{AccountID: r.AccountID, Hash: successor.Hash}
			v.assigned[payment] = append(v.assigned[payment], successor.indexes[fact])
			o := successor.as(fact, v)
			o.Confirmed = false // it is confirmed like any attempt
			found = append(found, o)
		}
	}
	return found, failed, nil
}

func (r replacedAttempt) nonce() usedNonce { return usedNonce{*r.pending.Sender, r.pending.Nonce} }

// replaced is the attempt once the search for its successor is over, empty for one that was not found.
func (r replacedAttempt) replaced(successor string) intents.Observation {
	o := r.pending
	o.State, o.DueAt, o.Confirmed, o.Found = transfer.Replaced, time.Time{}, true, successor
	return o
}

// successor is the transaction that took the attempt's place, as another attempt of the same intent.
func (r replacedAttempt) successor(hash common.Hash) intents.Followed {
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

// nonceSearch finds the transaction that has used a nonce, as two hosts show it or, where others cannot tell, one: what the transaction did
// is for two hosts to say. It asks for the sender's transaction counts: at blocks in doubling
// distances below the confirmed block until the nonce was unused, and then by halves. Its bounds are kept between polls.
type nonceSearch struct {
	// start is the confirmed block of the search's first poll. The nonce was used in one of the blocks first to last.
	start, first, last uint64
	// step is the distance of the next block from start, 0 once a block is known at which the nonce was unused.
	step uint64
	done bool
	// hash is the transaction, zero if all nodes have pruned the states of old blocks; the client can report the transaction then.
	hash common.Hash
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
	open, err := l.narrow(ctx, v, wanted, open)
	if err != nil {
		return nil, err
	}
	return wanted, l.readNonceBlocks(ctx, v, wanted, open)
}

// narrow asks for transaction counts until the blocks are known or the poll's calls are used up. It returns the nonces whose blocks
// are known.
func (l *loop) narrow(ctx context.Context, v *view, searches map[usedNonce]*nonceSearch, open []usedNonce) (located []usedNonce, err error) {
	quorum := l.quorum(v.provider)
	for calls := searchCalls; ; {
		open = slices.DeleteFunc(open, func(nonce usedNonce) bool {
			_, more := searches[nonce].next()
			if !more && !searches[nonce].done {
				located = append(located, nonce)
			}
			return !more || searches[nonce].done
		})
		round := open[:min(len(open), calls/quorum)]
		if len(round) == 0 {
			return located, nil
		}
		used, errs, err := ask(ctx, l, v, round, func(n usedNonce) *rpc.Call[uint64] {
			block, _ := searches[n].next()
			return rpc.TransactionCount(n.sender, rpc.Number(block))
		}, func(n usedNonce, count uint64) bool { return count > n.nonce })
		if err != nil {
			return nil, err
		}
		for n, of := range used {
			s := searches[round[n]]
			block, _ := s.next()
			switch used, ok := of.hint(); {
			case ok:
				s.learn(block, used)
			case errors.Is(errs[n], rpc.ErrMissing) && len(of.facts) == 0 && of.heard >= of.quorum:
				s.done = true
			default:
				s.done, s.err = true, undecidable(errs[n], len(of.facts))
			}
		}
		calls -= quorum * len(round)
		open = slices.Concat(open[len(round):], round) // the others come first where the calls do not suffice for all
	}
}

// readNonceBlocks ends the searches whose blocks are known: it reads which transaction of the block is the sender's.
func (l *loop) readNonceBlocks(ctx context.Context, v *view, searches map[usedNonce]*nonceSearch, located []usedNonce) error {
	verdicts, errs, err := ask(ctx, l, v, located, func(n usedNonce) *rpc.Call[[]evm.Transaction] {
		return rpc.BlockTransactions(searches[n].last, func(t evm.Transaction) bool { return t.From == n.sender && t.Nonce == n.nonce })
	}, func(_ usedNonce, of []evm.Transaction) (hash common.Hash) {
		for _, t := range of {
			hash = t.Hash
		}
		return hash
	})
	if err != nil {
		return err
	}
	for n, of := range verdicts {
		s, ok := searches[located[n]], false
		if s.hash, ok = of.hint(); !ok {
			s.err = undecidable(errs[n], len(of.facts))
		}
		s.done = true
	}
	return nil
}

// ask has the hosts of the chain answer a call about each nonce. errs are why hosts could not.
func ask[T any, F comparable](
	ctx context.Context, l *loop, v *view, nonces []usedNonce, call func(usedNonce) *rpc.Call[T], fact func(usedNonce, T) F,
) (verdicts []verdict[F], errs []error, err error) {
	type item struct {
		usedNonce
		err error
	}
	items := make([]*item, len(nonces))
	for n, nonce := range nonces {
		items[n] = &item{usedNonce: nonce}
	}
	verdicts, err = testify(ctx, l.hosts, v.provider, items, func(ctx context.Context, p *rpc.Provider, asked []*item) ([]shown[F], error) {
		answers, err := rpc.FetchEach(ctx, p, asked, func(i *item) *rpc.Call[T] { return call(i.usedNonce) })
		if err != nil {
			return nil, err
		}
		all := make([]shown[F], len(asked))
		for n, a := range answers {
			if a.Err != nil {
				asked[n].err = a.Err
				continue
			}
			all[n] = shown[F]{fact(asked[n].usedNonce, a.Value), true}
		}
		return all, nil
	})
	for _, i := range items {
		errs = append(errs, i.err)
	}
	return verdicts, errs, err
}

// undecidable is why a search fails: the hosts contradict each other, or those that could tell do not answer.
func undecidable(err error, facts int) error {
	switch {
	case facts > 1:
		return errContradicted
	case err != nil:
		return err
	default:
		return errUnanswered
	}
}
