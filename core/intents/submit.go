package intents

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/rpc"
	"intents.internal/core/screening"
	"intents.internal/core/signature"
	"intents.internal/core/transfer"
)

// SubmittableOrder returns the signed order of an intent that can be handed to a solver now, nil while it cannot: solvers know signatures of keys
// alone, and never fill an order that failed once, so every check of the preflight must be good.
func (s *Service) SubmittableOrder(ctx context.Context, intent *transfer.Intent) (*transfer.SignedOrder, error) {
	if !intent.Signing.Submit || intent.Signing.Submitted != nil || !s.CanPreflight(intent.Source.Account.Chain) {
		return nil, nil //nolint:nilnil // there is nothing to hand over
	}
	signed, err := s.Store.Signature(ctx, intent.AccountID, intent.ID)
	if err != nil || signed == nil {
		return nil, err
	}
	order, err := intent.Order()
	if err != nil {
		return nil, err
	}
	what, err := intent.SignatureAt(order, s.momentOf(intent, transfer.History{}, s.Store.Now()))
	if err != nil || what.TypedData == nil {
		return nil, err
	}
	ready, err := s.passesPreflight(ctx, intent, what.Digest, signed)
	if err != nil || !ready {
		return nil, err
	}
	scheme := intent.Signing.Scheme
	return &transfer.SignedOrder{Order: order, Scheme: scheme, TypedData: what.TypedData, Signature: transfer.TypedSignature(scheme, signed)}, nil
}

// passesPreflight reports whether every check of the preflight is good, and the signature is that of an account without code. What no node can
// tell now is not good.
func (s *Service) passesPreflight(ctx context.Context, intent *transfer.Intent, digest [32]byte, signed []byte) (bool, error) {
	user := common.HexToAddress(intent.Source.Account.Address)
	if !signature.ByKey(user, digest, signed) {
		return false, nil
	}
	preflight, err := s.Preflight(ctx, intent, nil)
	if err == nil && !slices.ContainsFunc(preflight.Checks, func(c transfer.Check) bool { return !c.OK || c.Unknown || c.Needed }) {
		var code []byte
		err = rpc.Ask(ctx, s.Chains, intent.Source.Account.Chain, func(ctx context.Context, p *rpc.Provider) (err error) {
			code, err = rpc.Fetch(ctx, p, rpc.Code(user, rpc.Latest))
			return err
		})
		return err == nil && len(code) == 0, notGreen(err)
	}
	return false, notGreen(err)
}

// notGreen returns nil for an error that says that an intent cannot be submitted now.
func notGreen(err error) error {
	_, status := errors.AsType[*StatusError](err)
	_, unanswered := errors.AsType[*rpc.NoAnswerError](err)
	_, screened := errors.AsType[*screening.NotAllowedError](err)
	if status || unanswered || screened || errors.Is(err, rpc.ErrNoProvider) || errors.Is(err, transfer.ErrQuoteEnded) {
		return nil
	}
	return err
}
