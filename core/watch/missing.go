package watch

import (
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/evm"
	"intents.internal/core/intents"
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

// missing is an attempt without a receipt at the poll's provider, with what the hosts show of it.
type missing struct {
	intents.Followed
	// pending, unknown and used are how many hosts show it in no block, do not know it, and do not know it while another transaction with
	// its nonce is confirmed.
	pending, unknown, used int
	// mined means that another provider has it in a block.
	mined bool
	// senders are how many hosts show each sender and nonce.
	senders map[usedNonce]int
	// quorum is how many hosts make a fact certain, and over is set once the intent waits for the attempt no longer.
	quorum int
	over   bool
	// err is why a provider cannot show it, nil if all can that were asked.
	err error
}

// sender returns who sent the attempt, nil while fewer than two hosts have shown it.
func (m *missing) sender() (sender *common.Address, nonce uint64) {
	for of, hosts := range m.senders {
		if m.Sender == nil && hosts >= m.quorum {
			return &of.sender, of.nonce
		}
	}
	return m.Sender, m.Nonce
}

// nonceUsed reports whether it is certain that another transaction with the attempt's nonce is confirmed.
func (m *missing) nonceUsed() bool { return m.used >= m.quorum }

// lookUp determines why attempts are in no block: they are pending, replaced, or unknown. Attempts that do not seem to be pending
// are looked up at other providers too. It returns apart those that no provider can show.
func (l *loop) lookUp(ctx context.Context, v *view, attempts []intents.Followed) (found []intents.Observation, failed []unreadableAttempt, err error) {
	all := make([]*missing, len(attempts))
	now := l.Store.Now()
	for n, a := range attempts {
		over := now.After(a.Intent.Deadline.Add(l.Grace))
		all[n] = &missing{Followed: a, senders: map[usedNonce]int{}, quorum: l.quorum(v.provider), over: over}
	}
	if err := l.queryAttempts(ctx, v, v.provider, all); err != nil {
		return nil, nil, err
	}
	for _, other := range l.chain.Other(v.provider) {
		unresolved := slices.DeleteFunc(slices.Clone(all), func(m *missing) bool { return m.resolved() })
		if len(unresolved) == 0 {
			break
		}
		_ = l.queryAttempts(ctx, v, other, unresolved) // the next one may respond
	}
	overUnknown, err := l.overUnknown(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	_, confirmedLater := v.statesAt()
	var replaced []replacedAttempt
	for _, m := range all {
		if m.pending+m.unknown == 0 && !m.mined {
			failed = append(failed, unreadableAttempt{m.Followed, m.err})
			continue
		}
		o, isReplaced := l.resolveMissing(m, now, overUnknown[m.AccountID], confirmedLater)
		if isReplaced {
			replaced = append(replaced, replacedAttempt{m.Followed, o})
			continue
		}
		found = append(found, o)
	}
	others, unreadable, err := l.replace(ctx, v, replaced)
	return append(found, others...), append(failed, unreadable...), err
}

// resolved reports whether no other provider need be asked: it is certain that the attempt is unknown, or it is pending, and who sent it is
// known.
func (m *missing) resolved() bool {
	sender, _ := m.sender()
	return m.unknown >= m.quorum || m.pending > 1 || m.pending > 0 && !m.over && (sender != nil || !m.hasSender())
}

// hasSender reports whether a provider has shown a sender and an account's nonce.
func (m *missing) hasSender() bool { return len(m.senders) > 0 }

// queryAttempts adds the response of one provider. The poll's provider is known to have no receipts.
func (l *loop) queryAttempts(ctx context.Context, v *view, provider *rpc.Provider, attempts []*missing) error {
	followed := make([]intents.Followed, len(attempts))
	for n, a := range attempts {
		followed[n] = a.Followed
	}
	transactions, err := fetchChosen(ctx, l, v, provider, followed, func(c *chosen) *rpc.Call[*evm.Transaction] { return rpc.TransactionByHash(c.hash) })
	if err != nil {
		return err
	}
	var unknown []*missing
	for n, a := range attempts {
		t := transactions[n].Value
		if err := transactions[n].Err; err != nil {
			a.err = err
			continue
		}
		if t != nil && t.UsesAccountNonce() {
			a.senders[usedNonce{t.From, t.Nonce}]++
		}
		switch sender, _ := a.sender(); {
		case t == nil && sender != nil:
			unknown = append(unknown, a)
			fallthrough
		case t == nil:
			a.unknown++
		case t.BlockNumber != nil:
			a.mined = true
		default:
			a.pending++
		}
	}
	return readNonces(ctx, v, provider, unknown)
}

// statesKept is how many blocks below the head full nodes keep the states of: 128, less those that come meanwhile.
const statesKept = 120

// statesAt is the block at which states are asked for: the confirmed one or, where full nodes do not keep its state, a newer one. later is
// how long it takes about until that is confirmed.
func (v *view) statesAt() (block uint64, later time.Duration) {
	block = max(v.confirmed, v.head.Number-min(statesKept, v.head.Number))
	return block, time.Duration(block-v.confirmed) * v.definition.BlockTime //nolint:gosec // a depth
}

// readNonces reads whether the senders had used the nonces by the confirmed block, or by one whose state the node keeps, as a provider shows
// it that does not know the attempts.
func readNonces(ctx context.Context, v *view, provider *rpc.Provider, attempts []*missing) error {
	block, _ := v.statesAt()
	counts, err := rpc.FetchEach(ctx, provider, attempts, func(m *missing) *rpc.Call[uint64] {
		sender, _ := m.sender()
		return rpc.TransactionCount(*sender, rpc.Number(block))
	})
	for n, count := range counts {
		if _, nonce := attempts[n].sender(); count.Err == nil && count.Value > nonce {
			attempts[n].used++
		}
	}
	return err
}

const (
	// maxUnknown is how many attempts of an account that no provider has ever shown are looked up as often as others.
	maxUnknown = 1000
	// overUnknownRetry is the time between two look-ups of each while there are more.
	overUnknownRetry = time.Hour
)

// overUnknown returns the accounts of never shown attempts that have more than maxUnknown of them.
func (l *loop) overUnknown(ctx context.Context, all []*missing) (map[uuid.UUID]bool, error) {
	var accounts []uuid.UUID
	for _, m := range all {
		if sender, _ := m.sender(); sender == nil && !slices.Contains(accounts, m.AccountID) {
			accounts = append(accounts, m.AccountID)
		}
	}
	overUnknown, err := l.Store.AccountsOverUnknown(ctx, l.id, accounts, maxUnknown)
	return overUnknown, ofStore(err)
}

// resolveMissing decides the state of an attempt without a receipt. What a provider shows as pending is pending, unless two do not know it.
// One provider's silence is no proof: a second one must not know it either or, if there is none, the only one must not know it for
// unknownFor. replaced is set if another transaction has used its nonce.
func (l *loop) resolveMissing(m *missing, now time.Time, overUnknown bool, confirmedLater time.Duration) (o intents.Observation, replaced bool) {
	o = m.Observation
	o.Sender, o.Nonce = m.sender()
	if m.pending > 0 && m.unknown < 2 && o.State == transfer.Dropped {
		o.State = transfer.Pending
	}
	o.DueAt = l.nextLookUp(o, now, longestRetry)
	if overUnknown && o.Sender == nil && !o.DueAt.IsZero() {
		o.DueAt = now.Add(overUnknownRetry)
	}
	if m.mined || m.pending > 0 && m.unknown < 2 {
		o.UnknownSince = time.Time{}
		return o, false
	}
	if o.UnknownSince.IsZero() {
		o.UnknownSince = now
	}
	unknown := now.Sub(o.UnknownSince)
	switch {
	case m.nonceUsed() && unknown >= confirmedLater && (m.quorum > 1 || unknown >= l.period()):
		return o, true
	case o.State == transfer.Pending && m.over && m.unknown >= m.quorum && (m.quorum > 1 || unknown >= unknownFor):
		o.State, o.DueAt = transfer.Dropped, now.Add(droppedRetry)
	}
	return o, false
}

// nextLookUp returns when an attempt in no block is looked up again: soon while it is young, and at the latest after longest.
func (l *loop) nextLookUp(o intents.Observation, now time.Time, longest time.Duration) time.Time {
	age := now.Sub(o.SeenAt)
	switch {
	case o.State != transfer.Dropped:
		return now.Add(min(max(age/4, l.period()), longest))
	case age > droppedFor:
		return time.Time{}
	default:
		return now.Add(droppedRetry)
	}
}
