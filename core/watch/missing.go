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

const (
	// unknownFor is how long a chain's only provider must not know an attempt before it counts as gone.
	unknownFor = 10 * time.Minute
	// longestRetry is the maximum time between two look-ups of an attempt that is in no block.
	longestRetry = 10 * time.Minute
	// droppedRetry is the time between two look-ups of a dropped attempt, and droppedFor how long it is still looked up.
	droppedRetry, droppedFor = time.Hour, 7 * 24 * time.Hour
)

// missing is an attempt without a receipt, with the providers' responses about it.
type missing struct {
	postgres.Followed
	// transaction comes from the first provider that knows it, nil if none does.
	transaction *evm.Transaction
	// mined means that another provider has a receipt.
	mined bool
	// responses is how many providers have responded.
	responses int
	// count is how many transactions the sender had sent by the confirmed block, 0 if unknown.
	count uint64
}

// sender returns who sent the attempt, nil if no provider has ever shown it.
func (m missing) sender() (sender *common.Address, nonce uint64) {
	if m.transaction != nil {
		return &m.transaction.From, m.transaction.Nonce
	}
	return m.Sender, m.Nonce
}

// nonceUsed reports whether another transaction with the attempt's nonce is confirmed.
func (m missing) nonceUsed() bool {
	sender, nonce := m.sender()
	return sender != nil && m.count > nonce
}

// lookUp determines why attempts are in no block: they are pending, replaced, or unknown. Attempts that do not seem to be pending
// are looked up at other providers too.
func (l *loop) lookUp(ctx context.Context, v *view, attempts []postgres.Followed) ([]postgres.Observation, error) {
	all := make([]*missing, len(attempts))
	for n, a := range attempts {
		all[n] = &missing{Followed: a}
	}
	if err := queryAttempts(ctx, v.provider, all); err != nil {
		return nil, err
	}
	if err := l.readNonces(ctx, v, all); err != nil {
		return nil, err
	}
	var unresolved []*missing
	for _, m := range all {
		if m.transaction == nil || m.nonceUsed() {
			unresolved = append(unresolved, m)
		}
	}
	for _, other := range l.chain.Other(v.provider) {
		if len(unresolved) == 0 || queryAttempts(ctx, other, unresolved) == nil {
			break // two providers are enough
		}
	}
	now := l.Store.Now()
	var found []postgres.Observation
	for _, m := range all {
		more, err := l.resolveMissing(ctx, v, m, now)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// queryAttempts adds the response of one provider. The poll's provider is known to have no receipts.
func queryAttempts(ctx context.Context, provider *rpc.Provider, attempts []*missing) error {
	transactions, err := rpc.AskEach(ctx, provider, attempts, func(a *missing) *rpc.Call[*evm.Transaction] { return rpc.TransactionByHash(a.Hash) })
	if err != nil {
		return err
	}
	for n, a := range attempts {
		if t := transactions[n]; t != nil {
			a.mined = a.mined || t.BlockNumber != nil
			a.transaction = t
		}
		a.responses++
	}
	return nil
}

// readNonces reads how many transactions the senders had sent by the confirmed block.
func (l *loop) readNonces(ctx context.Context, v *view, attempts []*missing) error {
	calls := map[*missing]*rpc.Call[uint64]{}
	var requests []rpc.Request
	for _, a := range attempts {
		if sender, _ := a.sender(); sender != nil && !a.mined {
			calls[a] = rpc.TransactionCount(*sender, rpc.Number(v.confirmed))
			requests = append(requests, calls[a])
		}
	}
	if len(requests) == 0 {
		return nil
	}
	if err := v.provider.Do(ctx, requests...); err != nil {
		return err
	}
	for a, call := range calls {
		count, err := call.Result()
		if err != nil && !errors.Is(err, rpc.ErrMissing) { // the node may keep no state of that block; a later poll asks for a newer one
			return err
		}
		a.count = count
	}
	return nil
}

// resolveMissing decides the state of an attempt without a receipt. One provider's silence is no proof: a second provider must
// not know it either or, if there is none, the only one must not know it for unknownFor.
func (l *loop) resolveMissing(ctx context.Context, v *view, m *missing, now time.Time) ([]postgres.Observation, error) {
	o := m.Observation
	o.Sender, o.Nonce = m.sender()
	if m.transaction != nil && o.State == transfer.Dropped {
		o.State = transfer.Pending
	}
	o.DueAt = l.nextLookUp(o, now)
	if m.mined || m.transaction != nil && !m.nonceUsed() {
		o.UnknownSince = time.Time{}
		return []postgres.Observation{o}, nil
	}
	if o.UnknownSince.IsZero() {
		o.UnknownSince = now
	}
	unknown := now.Sub(o.UnknownSince)
	switch {
	case m.nonceUsed() && (m.responses > 1 || unknown >= l.period()):
		return l.replace(ctx, v, m.Followed, o)
	case m.transaction == nil && o.State == transfer.Pending && now.After(m.Intent.Deadline.Add(l.Grace)) && (m.responses > 1 || unknown >= unknownFor):
		o.State, o.DueAt = transfer.Dropped, now.Add(droppedRetry)
	}
	return []postgres.Observation{o}, nil
}

// nextLookUp returns when an attempt in no block is looked up again: soon while it is young.
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
