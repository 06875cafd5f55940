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
	// authorizationPeriod is the time between two rounds of signed transfers.
	authorizationPeriod = time.Minute
	// maxCancelled bounds the cancelled authorizations that are remembered. Those beyond it are looked for again.
	maxCancelled = 10_000
)

// authorizationRound is where the rounds of a chain's signed transfers are.
type authorizationRound struct {
	intents.SignedTurn

	last time.Time
	// rounds counts them: each asks another provider, as one may hide what was used.
	rounds int
	// cancelled are the intents whose authorizations were cancelled: nothing moves.
	cancelled map[uuid.UUID]bool
}

// compareAuthorizations asks the tokens of signed transfers whether their authorizations were used, since anybody may have sent them and nobody
// reported it. Where one was, the transaction is looked for, and followed like a reported attempt. Accounts have the same share of a round.
func (r *repairer) compareAuthorizations(ctx context.Context, at settlerView, limit int) error {
	round := &r.authorizations
	if time.Since(round.last) < authorizationPeriod {
		return nil
	}
	signed, next, err := r.Store.SignedTransfers(ctx, r.id, round.SignedTurn, limit)
	if err != nil {
		return err
	}
	providers := r.chain.Providers()
	at.provider = providers[round.rounds%len(providers)]
	round.last, round.SignedTurn, round.rounds = time.Now(), next, round.rounds+1
	if len(round.cancelled) > maxCancelled || round.cancelled == nil {
		round.cancelled = map[uuid.UUID]bool{}
	}
	answers, err := rpc.FetchEach(ctx, at.provider, signed, authorizationStateCall)
	if err != nil {
		r.uncompared(signed[0], err)
		return nil
	}
	r.logs = maxRepairLogs
	var seen []intents.Observation
	for n, o := range signed {
		state, err := answers[n].Value, answers[n].Err
		if err != nil {
			r.uncompared(o, err)
			continue
		}
		if len(state) != common.HashLength || common.Hash(state) == (common.Hash{}) || round.cancelled[o.TransferID] {
			continue
		}
		sent, err := r.findAuthorization(ctx, at, o)
		if err != nil {
			r.uncompared(o, err)
			continue
		}
		seen = append(seen, sent...)
	}
	if len(seen) == 0 {
		return nil
	}
	_, err = r.writeChain(ctx, intents.ChainWrite{Seen: seen})
	return err
}

func authorizationStateCall(o intents.Followed) *rpc.Call[[]byte] {
	data, _ := o.Intent.AuthorizationStateCall() // the addresses of an intent are addresses
	return rpc.CallContract(rpc.Message{To: common.HexToAddress(o.Intent.Source.Token.Address), Data: data}, rpc.Latest)
}

// findAuthorization looks for the transaction that used an authorization, at each host. A transaction that is known is read in its own time.
func (r *repairer) findAuthorization(ctx context.Context, at settlerView, o intents.Followed) ([]intents.Observation, error) {
	known, err := r.Store.Transactions(ctx, o.AccountID, o.TransferID)
	if err != nil {
		return nil, err
	}
	var hash common.Hash
	var end transfer.AuthorizationEnd
	found := false
	for _, at.provider = range r.chain.Providers() {
		found, err = r.findLog(ctx, at, o, transfer.RoleSend, at.Head, common.HexToAddress(o.Intent.Source.Token.Address), o.Intent.AuthorizationTopics(),
			func(log evm.Log) (ok bool) {
				hash = log.TxHash
				end, ok = o.Intent.MatchAuthorization(log)
				return ok
			})
		if found {
			break
		}
	}
	if !found {
		return nil, err
	}
	if end == transfer.AuthorizationCanceled {
		r.authorizations.cancelled[o.TransferID] = true
		return nil, nil
	}
	if slices.ContainsFunc(known, func(t transfer.Transaction) bool { return t.Hash == hash }) {
		return nil, nil
	}
	o.Transaction = transfer.Transaction{Role: transfer.RoleSend, Chain: at.chain, Hash: hash, State: transfer.Pending, Reported: true}
	o.DueAt = r.Store.Now()
	return []intents.Observation{o.Observation}, nil
}
