package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"intents.internal/core/access/siwe"
	"intents.internal/core/account"
)

const (
	// walletMessageTTL is how old a wallet's message may be, and how long its nonce is valid.
	walletMessageTTL = 10 * time.Minute
	// walletClockSkew is how far a wallet's clock may be ahead of this one.
	walletClockSkew = time.Minute
)

// The errors of a wallet's message, besides *siwe.SyntaxError and siwe.ErrSignature.
var (
	ErrWalletSite        = errors.New("the message is for another site")
	ErrWalletExpired     = errors.New("the message is too old")
	ErrWalletNotYetValid = errors.New("the message is not valid yet")
	ErrWalletNonce       = errors.New("the message's nonce is not one to be used")
)

// WalletNonce returns a nonce for one message, which is valid for ten minutes. It may return a *LimitedError.
func (s *Service) WalletNonce(ctx context.Context, v Visitor) (string, error) {
	if err := s.limits.signInPerIP.take(ctx, v.network()); err != nil {
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
// ErrWallet errors, siwe.ErrSignature, ErrSignUpClosed, ErrAccountDisabled or a *LimitedError.
func (s *Service) SignInWithEthereum(ctx context.Context, v Visitor, message, signature string) (*SignedIn, error) {
	if err := s.limits.signInPerIP.take(ctx, v.network()); err != nil {
		return nil, err
	}
	m, err := siwe.Parse(message)
	if err != nil {
		return nil, err
	}
	now := s.Store.Now()
	if err := s.checkMessage(m, now); err != nil {
		return nil, err
	}
	fresh, err := s.Store.TakeNonce(ctx, sha256.Sum256([]byte(m.Nonce)), now)
	if err != nil {
		return nil, err
	}
	if !fresh {
		return nil, ErrWalletNonce
	}
	if err := m.Verify(signature); err != nil {
		return nil, err
	}
	owner, identity, err := account.NewWalletAccount(m.Address, now)
	if err != nil {
		return nil, err
	}
	signedIn, err := s.signInIdentity(ctx, v, identity, "with a wallet", func() (*account.Account, error) { return owner, nil })
	if errors.Is(err, account.ErrEmailTaken) { // the address is made from the wallet's: only its own account can hold it
		return nil, ErrAccountDisabled
	}
	return signedIn, err
}

// checkMessage returns an ErrWallet error unless the message is for this site and this time.
func (s *Service) checkMessage(m *siwe.Message, now time.Time) error {
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
