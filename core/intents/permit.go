package intents

import (
	"context"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// permitTimeout bounds the wait for the nonces of permits, which a record does not need.
const permitTimeout = time.Second

// recordAt is a record with the moment that it is of.
type recordAt struct {
	*Record
	at transfer.Moment
}

// permitOwner is whose permits of a token have one sequence of nonces.
type permitOwner struct{ token, owner string }

// addPermits adds the permits that grant what the signatures of intents need, where the token has permits and a node tells the owner's nonce. A chain
// is asked once, and once for each owner of a token, however many the records are.
func (s *Service) addPermits(ctx context.Context, records ...recordAt) error {
	var withPermit []recordAt
	owners := map[caip.ChainID]map[permitOwner]*big.Int{}
	for _, r := range records {
		chain := r.Intent.Source.Account.Chain
		if r.Signature == nil || r.Signature.TypedData == nil || r.Signature.Allowance == nil || r.at.Token.EIP2612 == nil || !s.CanPreflight(chain) {
			continue
		}
		if owners[chain] == nil {
			owners[chain] = map[permitOwner]*big.Int{}
		}
		owners[chain][r.permitOwner()] = nil
		withPermit = append(withPermit, r)
	}
	if len(withPermit) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, permitTimeout)
	defer cancel()
	var asking errgroup.Group // a slow chain takes no time from the others
	for chain, nonces := range owners {
		asking.Go(func() error { return s.askPermitNonces(ctx, chain, nonces) })
	}
	if err := asking.Wait(); err != nil {
		return err
	}
	for _, r := range withPermit {
		var err error
		nonce := owners[r.Intent.Source.Account.Chain][r.permitOwner()]
		if r.Signature.Permit, err = r.Intent.PermitOf(r.Signature.Allowance, r.at, nonce); err != nil {
			return err
		}
	}
	return nil
}

func (r recordAt) permitOwner() permitOwner {
	return permitOwner{r.Intent.Source.Token.Address, r.Signature.Allowance.Owner}
}

// askPermitNonces sets the nonces of owners, of those that a node of the chain tells.
func (s *Service) askPermitNonces(ctx context.Context, chain caip.ChainID, nonces map[permitOwner]*big.Int) error {
	var owners []permitOwner
	var calls []rpc.Message
	for o := range nonces {
		data, err := transfer.NoncesCall(o.owner)
		if err != nil {
			return err
		}
		owners, calls = append(owners, o), append(calls, rpc.Message{To: common.HexToAddress(o.token), Data: data})
	}
	_ = rpc.Ask(ctx, s.Chains, chain, func(ctx context.Context, p *rpc.Provider) error {
		results, err := rpc.FetchEach(ctx, p, calls, func(m rpc.Message) *rpc.Call[[]byte] { return rpc.CallContract(m, rpc.Latest) })
		if err != nil {
			return err
		}
		for n, r := range results {
			if r.Err == nil {
				nonces[owners[n]] = word(r.Value)
			} else if failed := answered(r.Err); failed != nil {
				err = failed
			}
		}
		return err
	})
	return nil
}
