package watch

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
)

// replacedAttempt is an attempt whose nonce another transaction has used, with what is recorded of it unless it is replaced.
type replacedAttempt struct {
	postgres.Followed
	pending postgres.Observation
}

// replace marks attempts whose nonces other transactions have used, and looks for those transactions: they may have the effects of
// the intents, for example at another gas price. Attempts whose search is not over stay pending until the next poll.
func (l *loop) replace(ctx context.Context, v *view, replaced []replacedAttempt) (found []postgres.Observation, failed []unreadableAttempt, err error) {
	var transfers []replacedAttempt
	for _, r := range replaced {
		switch {
		case v.to < v.head.Number: // its events may not have been read yet
			found = append(found, r.pending)
		case r.Intent.Type != transfer.Transfer: // an event would have reported an order that another transaction opened
			found = append(found, r.replaced())
		default:
			transfers = append(transfers, r)
		}
	}
	searches, err := l.findNonces(ctx, v, transfers)
	if err != nil {
		return nil, nil, err
	}
	receipts, err := readSuccessors(ctx, v.provider, searches)
	if err != nil {
		return nil, nil, err
	}
	var mined []minedAttempt
	var carried []replacedAttempt
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
			found = append(found, r.replaced())
		default:
			carried = append(carried, r)
			mined = append(mined, minedAttempt{r.successor(receipt.TxHash), *receipt})
		}
	}
	evaluated, unseen, err := l.evaluate(ctx, v, v.provider, mined)
	if err != nil {
		return nil, nil, err
	}
	errs := make(map[postgres.TransactionKey]error, len(unseen))
	for _, u := range unseen {
		errs[u.Key()] = u.err
	}
	for n, r := range carried {
		if err := errs[mined[n].Key()]; err != nil {
			failed = append(failed, unreadableAttempt{r.Followed, err})
			continue
		}
		found = append(found, r.replaced())
	}
	for _, o := range evaluated {
		if o.State == transfer.Mined {
			found = append(found, o)
		}
	}
	return found, failed, nil
}

func (r replacedAttempt) nonce() usedNonce { return usedNonce{*r.pending.Sender, r.pending.Nonce} }

// replaced is the attempt once the search is over.
func (r replacedAttempt) replaced() postgres.Observation {
	o := r.pending
	o.State, o.DueAt, o.Confirmed = transfer.Replaced, time.Time{}, true
	return o
}

// successor is the transaction that took the attempt's place, as another attempt of the same intent.
func (r replacedAttempt) successor(hash common.Hash) postgres.Followed {
	other := r.Followed
	other.Hash, other.Reported, other.SeenAt, other.Sender, other.Nonce = hash, false, time.Time{}, r.pending.Sender, r.pending.Nonce
	return other
}
