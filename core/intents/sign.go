package intents

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/identity/access"
	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/signature"
	"intents.internal/core/transfer"
)

var (
	// ErrSignature is returned for a signature that the intent's user has not made of its typed data.
	ErrSignature = errors.New("the signature is not by the intent's source account")
	// ErrAccountNotDeployed is returned for a valid signature of an account without code (ERC-6492), which no settler or token understands.
	ErrAccountNotDeployed = errors.New("the account is not deployed")
	// ErrNotSigned is returned for the relay of an intent that has no signature.
	ErrNotSigned = errors.New("the intent has no signature")
)

// Sign stores the signature of an intent's typed data, if the intent's user has made it, and returns the intent changed. Another valid one replaces
// it. It returns a *screening.NotAllowedError, a *StatusError of transfer.ErrNotSendable, ErrSignature, ErrAccountNotDeployed, rpc.ErrNoProvider
// where only a node could tell, or an *rpc.NoAnswerError. The grant is that of the caller to the account.
func (s *Service) Sign(ctx context.Context, grant access.Grant, intent *transfer.Intent, given []byte) (*transfer.Intent, error) {
	if err := s.refuseHandOut(ctx, intent); err != nil {
		return nil, err
	}
	history, err := s.Store.TransferHistory(ctx, intent)
	if err != nil {
		return nil, err
	}
	signable := func(i *transfer.Intent, now time.Time) error {
		if err := i.Signable(s.momentOf(i, history, now)); err != nil {
			return &StatusError{i.Status, err}
		}
		return nil
	}
	now := s.Store.Now()
	if err := signable(intent, now); err != nil {
		return nil, err
	}
	at := s.momentOf(intent, history, now)
	order, err := intent.Order()
	if err != nil {
		return nil, err
	}
	signing, err := intent.SignatureAt(order, at)
	if err != nil {
		return nil, err
	}
	accepted, err := s.verify(ctx, intent, at, signing.Digest, given)
	if err != nil {
		return nil, err
	}
	return s.Store.SaveSignature(ctx, grant, intent.AccountID, intent.ID, accepted, signable)
}

// verify returns the signature in the form that contracts take, if the intent's user has made it. An account with code answers itself (ERC-1271), and
// its own key does not count, because the contracts ask by code; it gets its bytes as they were given.
func (s *Service) verify(ctx context.Context, intent *transfer.Intent, at transfer.Moment, digest [32]byte, given []byte) ([]byte, error) {
	chain, user := intent.Source.Account.Chain, common.HexToAddress(intent.Source.Account.Address)
	normal := signature.Normalize(given)
	byKey := signature.ByKey(user, digest, normal)
	if intent.Type == transfer.Transfer && at.Token.ERC3009 != nil && at.Token.ERC3009.Form == registry.VRSForm {
		if !byKey { // the token recovers a key, whatever code the account has
			return nil, ErrSignature
		}
		return normal, nil
	}
	if byKey && !s.CanPreflight(chain) {
		return normal, nil
	}
	var code []byte
	err := rpc.Ask(ctx, s.Chains, chain, func(ctx context.Context, p *rpc.Provider) (err error) {
		code, err = rpc.Fetch(ctx, p, rpc.Code(user, rpc.Latest))
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(code) == 0 && byKey:
		return normal, nil
	}
	smart := signature.SmartAccount{Signature: given}
	if len(code) == 0 {
		if smart, err = signature.ParseSmartAccount(given); err != nil || smart.Factory == (common.Address{}) {
			return nil, ErrSignature
		}
	}
	valid, err := signature.BySmartAccount(ctx, s.Chains, chain, user, digest, smart)
	switch {
	case err != nil:
		return nil, err
	case !valid:
		return nil, ErrSignature
	case len(code) == 0:
		return nil, ErrAccountNotDeployed
	default:
		return given, nil
	}
}

// Relay returns the transaction that executes a signed intent, which any account may send. It returns a *screening.NotAllowedError, a *StatusError of
// transfer.ErrNotSendable, or ErrNotSigned.
func (s *Service) Relay(ctx context.Context, intent *transfer.Intent) (*transfer.Tx, error) {
	if err := s.refuseHandOut(ctx, intent); err != nil {
		return nil, err
	}
	history, err := s.Store.TransferHistory(ctx, intent)
	if err != nil {
		return nil, err
	}
	at := s.momentOf(intent, history, s.Store.Now())
	if err := intent.Relayable(at); err != nil {
		return nil, &StatusError{intent.Status, err}
	}
	signed, err := s.Store.Signature(ctx, intent.AccountID, intent.ID)
	if err != nil {
		return nil, err
	}
	if signed == nil {
		return nil, ErrNotSigned
	}
	order, err := intent.Order()
	if err != nil {
		return nil, err
	}
	return intent.RelayTx(order, at, signed)
}
