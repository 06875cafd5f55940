package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/identity/account"
	"intents.internal/core/identity/siwe"
	"intents.internal/core/rpc"
	"intents.internal/core/screening"
	"intents.internal/core/signature"
	"intents.internal/pkg/caip"
)

const (
	// walletMessageTTL is how old a wallet's message may be, and how long its nonce is valid.
	walletMessageTTL = 10 * time.Minute
	// walletClockSkew is how far a wallet's clock may be ahead of this one.
	walletClockSkew = time.Minute
)

// The errors of a wallet's message, in addition to *siwe.SyntaxError and siwe.ErrSignature.
var (
	ErrWalletSite        = errors.New("the message is for another site")
	ErrWalletExpired     = errors.New("the message is too old")
	ErrWalletNotYetValid = errors.New("the message is not valid yet")
	ErrWalletNonce       = errors.New("the message's nonce is not one to be used")
	// ErrWalletChain means that the key of the address did not sign, and that the chain has no node that could verify the
	// signature of a smart account.
	ErrWalletChain = errors.New("no node of the message's chain can check the signature")
)

// WalletNonce returns a nonce for one message, which is valid for ten minutes. It may return a *LimitedError.
func (s *Persons) WalletNonce(ctx context.Context, client Client) (string, error) {
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return "", err
	}
	nonce := rand.Text()
	if err := s.Store.InsertNonce(ctx, sha256.Sum256([]byte(nonce)), s.Store.Now().Add(walletMessageTTL)); err != nil {
		return "", err
	}
	return nonce, nil
}

// SignInWithEthereum signs in the signer of an ERC-4361 message for this site, and makes an account at the first sign-in. A message
// that is valid but for its signature uses up its nonce. It returns a *siwe.SyntaxError, one of the
// ErrWallet errors, a *screening.NotAllowedError, siwe.ErrSignature, an *rpc.NoAnswerError, ErrSignUpClosed, ErrAccountDisabled or a *LimitedError.
func (s *Persons) SignInWithEthereum(ctx context.Context, client Client, message, signature string) (*SignedIn, error) {
	identity, err := s.provenWallet(ctx, client, message, signature)
	if err != nil {
		return nil, s.Screening.Refused(ctx, screening.About{Stage: screening.AtSignIn}, err)
	}
	signedIn, err := s.signInIdentity(ctx, client, identity, "with a wallet", func(*account.Session) {}, func() (*account.Account, error) {
		return account.NewWalletAccount(identity, s.Store.Now())
	})
	if errors.Is(err, account.ErrEmailTaken) { // the address is made from the wallet's: only its own account can hold it
		return nil, ErrAccountDisabled
	}
	return signedIn, err
}

// provenWallet returns the wallet that signed a message for this site, with the errors of SignInWithEthereum.
func (s *Persons) provenWallet(ctx context.Context, client Client, message, signature string) (account.Identity, error) {
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return account.Identity{}, err
	}
	m, err := siwe.Parse(message)
	if err != nil {
		return account.Identity{}, err
	}
	now := s.Store.Now()
	if err := s.checkMessage(m, now); err != nil {
		return account.Identity{}, err
	}
	wallet := caip.AccountID{Chain: caip.EIP155Chain(m.ChainID), Address: m.Address}
	if err := s.Screening.CheckWallet(wallet); err != nil { // before the signature: no node is asked about the address
		return account.Identity{}, err
	}
	nonce := sha256.Sum256([]byte(m.Nonce))
	fresh, err := s.Store.TakeNonce(ctx, nonce, now)
	if err != nil {
		return account.Identity{}, err
	}
	if !fresh {
		return account.Identity{}, ErrWalletNonce
	}
	identity, err := s.signer(ctx, m, signature)
	if _, unanswered := errors.AsType[*rpc.NoAnswerError](err); unanswered {
		// The signature was not checked, so the same message can be sent again.
		err = errors.Join(err, s.Store.InsertNonce(ctx, nonce, now.Add(walletMessageTTL)))
	}
	return identity, err
}

// signer returns the wallet at the message's address, if it made the signature. The key of an address is tried first and is the
// same wallet on every chain, even if the address has code: a key that has delegated to a contract (EIP-7702) still signs every
// transaction of its account and can revoke the delegation, and nobody has the key of a contract's address. A signature that a
// contract accepts proves the account only on its own chain, because the same address elsewhere may have other code or other
// owners.
func (s *Persons) signer(ctx context.Context, m *siwe.Message, signed string) (account.Identity, error) {
	raw, err := siwe.ParseSignature(signed)
	if err != nil {
		return account.Identity{}, err
	}
	if m.SignedByKey(raw) {
		return account.NewWalletIdentity(m.Address)
	}
	smart, err := signature.ParseSmartAccount(raw)
	if err != nil {
		return account.Identity{}, siwe.ErrSignature
	}
	chain := caip.EIP155Chain(m.ChainID)
	accepted, err := signature.BySmartAccount(ctx, s.Chains, chain, common.HexToAddress(m.Address), m.Hash(), smart)
	switch {
	case errors.Is(err, rpc.ErrNoProvider):
		return account.Identity{}, ErrWalletChain
	case err != nil:
		return account.Identity{}, err
	case !accepted:
		return account.Identity{}, siwe.ErrSignature
	}
	return account.NewSmartAccountIdentity(chain, m.Address)
}

// checkMessage returns an ErrWallet error unless the message is for this site and this time.
func (s *Persons) checkMessage(m *siwe.Message, now time.Time) error {
	site, err := url.Parse(s.PublicURL)
	if err != nil {
		return fmt.Errorf("read the public URL: %w", err)
	}
	about, err := url.Parse(m.URI)
	switch {
	case err != nil || about.User != nil || originOf(about) != originOf(site):
		return ErrWalletSite
	case m.Scheme != "" && m.Scheme != site.Scheme || m.Domain != site.Host && site.Scheme+"://"+m.Domain != originOf(site):
		return ErrWalletSite
	case m.IssuedAt.After(now.Add(walletClockSkew)) || now.Before(m.NotBefore):
		return ErrWalletNotYetValid
	case now.Sub(m.IssuedAt) > walletMessageTTL || !m.ExpirationTime.IsZero() && !now.Before(m.ExpirationTime):
		return ErrWalletExpired
	}
	return nil
}

// originOf serializes an origin as browsers do (RFC 6454): in lower case and without the scheme's default port.
func originOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host
}
