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

// unknownFor is how long the only provider of a chain must not know an attempt before it counts as gone.
const unknownFor = 10 * time.Minute

// knowledge is what the providers know of an attempt without a receipt.
type knowledge struct {
	// transaction is as the first provider shows it that knows it, nil where none does.
	transaction *evm.Transaction
	// mined means that a provider has a receipt.
	mined bool
	// asked is how many providers have answered.
	asked int
}

// lookUp finds out why attempts are in no block: they are pending, replaced, or nobody knows them.
func (l *loop) lookUp(ctx context.Context, v *view, attempts []postgres.Followed) ([]postgres.Observation, error) {
	if len(attempts) == 0 {
		return nil, nil
	}
	known := make([]knowledge, len(attempts))
	if err := askForAttempts(ctx, v.provider, attempts, known); err != nil {
		return nil, err
	}
	for _, other := range l.chain.Other(v.provider) {
		if askForAttempts(ctx, other, attempts, known) == nil {
			break // two providers are enough
		}
	}
	counts, err := l.nonces(ctx, v, attempts, known)
	if err != nil {
		return nil, err
	}
	now := l.Store.Now()
	var found []postgres.Observation
	for n, a := range attempts {
		if t := known[n].transaction; t != nil {
			a.Sender, a.Nonce = &t.From, t.Nonce
		}
		more, err := l.conclude(ctx, v, a, known[n], counts[n], now)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// askForAttempts adds what one provider knows.
func askForAttempts(ctx context.Context, provider *rpc.Provider, attempts []postgres.Followed, known []knowledge) error {
	transactions := make([]*rpc.Call[*evm.Transaction], len(attempts))
	receipts := make([]*rpc.Call[*evm.Receipt], len(attempts))
	var requests []rpc.Request
	for n, a := range attempts {
		transactions[n], receipts[n] = rpc.TransactionByHash(a.Hash), rpc.Receipt(a.Hash)
		requests = append(requests, transactions[n], receipts[n])
	}
	if err := provider.Do(ctx, requests...); err != nil {
		return err
	}
	for n := range attempts {
		t, err := transactions[n].Result()
		if err != nil {
			return err
		}
		receipt, err := receipts[n].Result()
		if err != nil {
			return err
		}
		if known[n].transaction == nil {
			known[n].transaction = t
		}
		known[n].mined = known[n].mined || receipt != nil
		known[n].asked++
	}
	return nil
}

// nonces reads how many transactions the senders had sent by the confirmed block, 0 where the sender is not known.
func (l *loop) nonces(ctx context.Context, v *view, attempts []postgres.Followed, known []knowledge) ([]uint64, error) {
	calls := map[int]*rpc.Call[uint64]{}
	var requests []rpc.Request
	for n, a := range attempts {
		sender := a.Sender
		if t := known[n].transaction; t != nil {
			sender = &t.From
		}
		if sender != nil && !known[n].mined {
			calls[n] = rpc.TransactionCount(*sender, rpc.Number(v.confirmed))
			requests = append(requests, calls[n])
		}
	}
	if len(requests) > 0 {
		if err := v.provider.Do(ctx, requests...); err != nil {
			return nil, err
		}
	}
	counts := make([]uint64, len(attempts))
	for n, call := range calls {
		count, err := call.Result()
		if errors.Is(err, rpc.ErrMissing) {
			continue // the node keeps no state of that block; a later look asks for a newer one
		}
		if err != nil {
			return nil, err
		}
		counts[n] = count
	}
	return counts, nil
}

// conclude decides what an attempt without a receipt is. Nothing is concluded from one provider's silence: a second provider must not
// know it either or, where there is none, the only one must not know it for some time.
func (l *loop) conclude(ctx context.Context, v *view, a postgres.Followed, k knowledge, count uint64, now time.Time) ([]postgres.Observation, error) {
	o := a.Observation
	o.DueAt = l.nextLookUp(o, now)
	unknown := now.Sub(o.UnknownSince)
	switch {
	case o.UnknownSince.IsZero():
		unknown = 0
		o.UnknownSince = now
	case o.State == transfer.Dropped && k.transaction != nil:
		o.State = transfer.Pending
	}
	switch {
	case k.mined: // another provider is ahead
		o.UnknownSince = time.Time{}
	case o.Sender != nil && count > o.Nonce && (k.asked > 1 || unknown >= l.period()):
		return l.replace(ctx, v, a, o)
	case k.transaction != nil:
		if o.Sender == nil || count <= o.Nonce {
			o.UnknownSince = time.Time{}
		}
	case o.State == transfer.Pending && now.After(a.Intent.Deadline.Add(l.Grace)) && (k.asked > 1 || unknown >= unknownFor):
		o.State, o.DueAt = transfer.Dropped, now.Add(droppedRetry)
	}
	return []postgres.Observation{o}, nil
}

// nextLookUp is when an attempt is looked up again that is in no block: soon while it is young.
func (l *loop) nextLookUp(o postgres.Observation, now time.Time) time.Time {
	age := now.Sub(o.SeenAt)
	switch {
	case o.State != transfer.Dropped:
		return now.Add(min(max(age/4, l.period()), longestRetry))
	case age > droppedFor:
		return time.Time{}
	default:
		return now.Add(droppedRetry)
	}
}

// replace marks an attempt whose nonce another transaction has used, and looks for that one: it may have the effect that the intent asks
// for, at another gas price for example.
func (l *loop) replace(ctx context.Context, v *view, a postgres.Followed, o postgres.Observation) ([]postgres.Observation, error) {
	if v.to < v.head.Number {
		return []postgres.Observation{o}, nil // events that tell of it may not have been read yet
	}
	o.State, o.DueAt, o.Confirmed = transfer.Replaced, time.Time{}, true
	found := []postgres.Observation{o}
	if a.Intent.Type != transfer.Transfer {
		return found, nil // its event would have told of the order that another transaction opened
	}
	hash, err := l.findByNonce(ctx, v, *o.Sender, o.Nonce)
	if err != nil || hash == (common.Hash{}) || hash == o.Hash {
		if errors.Is(err, rpc.ErrMissing) {
			err = nil // the node keeps no old states; the client can report the other transaction
		}
		return found, err
	}
	receipt := rpc.Receipt(hash)
	if err := v.provider.Do(ctx, receipt); err != nil {
		return nil, err
	}
	r, err := receipt.Result()
	if err != nil || r == nil {
		return nil, errors.Join(errLags, err)
	}
	successor := a
	successor.Hash, successor.Reported, successor.SeenAt, successor.Sender, successor.Nonce = hash, false, time.Time{}, o.Sender, o.Nonce
	judged, err := l.judge(ctx, v, []minedAttempt{{successor, *r}})
	if err != nil {
		return nil, err
	}
	if judged[0].State == transfer.Mined {
		found = append(found, judged[0])
	}
	return found, nil
}

// findByNonce finds the transaction in which a sender used a nonce, by a binary search for its block. It returns no hash where the block
// is not among the last blocks whose state the node keeps.
func (l *loop) findByNonce(ctx context.Context, v *view, sender common.Address, nonce uint64) (common.Hash, error) {
	used := func(block uint64) (bool, error) {
		call := rpc.TransactionCount(sender, rpc.Number(block))
		if err := v.provider.Do(ctx, call); err != nil {
			return false, err
		}
		count, err := call.Result()
		return count > nonce, err
	}
	after, before := v.confirmed, v.confirmed // the nonce is used at after and not at before
	for step := uint64(1); ; step *= 2 {
		before = v.confirmed - min(step, v.confirmed)
		ok, err := used(before)
		if err != nil {
			return common.Hash{}, err
		}
		if !ok {
			break
		}
		if after = before; before == 0 {
			return common.Hash{}, nil
		}
	}
	for after-before > 1 {
		middle := before + (after-before)/2
		ok, err := used(middle)
		if err != nil {
			return common.Hash{}, err
		}
		if ok {
			after = middle
		} else {
			before = middle
		}
	}
	list := rpc.BlockTransactions(after)
	if err := v.provider.Do(ctx, list); err != nil {
		return common.Hash{}, err
	}
	transactions, err := list.Result()
	for _, t := range transactions {
		if t.From == sender && t.Nonce == nonce {
			return t.Hash, err
		}
	}
	return common.Hash{}, err
}
