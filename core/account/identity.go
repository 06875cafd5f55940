package account

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"intents.internal/pkg/caip"
)

// WalletIssuer is the issuer of identities that are wallets.
const WalletIssuer = "eip155"

// Identity is a way to sign in besides the password: the `sub` of an OpenID Connect issuer, or a wallet, whose issuer is
// WalletIssuer and whose subject is its address in lower case.
type Identity struct {
	Issuer  string
	Subject string
}

// NewWalletIdentity reads a wallet's address, in lower case or with its EIP-55 checksum. It returns an *InvalidError for
// any other text.
func NewWalletIdentity(address string) (Identity, error) {
	spelled, err := caip.ParseAddress(address)
	if err != nil {
		return Identity{}, &InvalidError{Field: "walletAddress", Message: err.Error()}
	}
	return Identity{Issuer: WalletIssuer, Subject: strings.ToLower(spelled)}, nil
}

// NewWalletAccount makes the account of a wallet, which has no password. Its name is the address in EIP-55 spelling, its
// e-mail address one under .invalid (RFC 2606).
func NewWalletAccount(address string, now time.Time) (*Account, Identity, error) {
	identity, err := NewWalletIdentity(address)
	if err != nil {
		return nil, Identity{}, err
	}
	name, err := caip.ParseAddress(identity.Subject)
	if err != nil {
		return nil, Identity{}, err
	}
	a, err := newAccount(name, identity.Subject+"@"+WalletIssuer+".invalid", "", now)
	if err != nil {
		return nil, Identity{}, err
	}
	return a, identity, nil
}

// NewOIDCIdentity takes an issuer's URL and a subject of at most 255 characters (OpenID Connect Core, section 2), both
// as the checked ID token has them.
func NewOIDCIdentity(issuer, subject string) (Identity, error) {
	if !strings.HasPrefix(issuer, "https://") && !strings.HasPrefix(issuer, "http://") || len(issuer) > 2048 || unstorable(issuer) {
		return Identity{}, &InvalidError{Field: "issuer", Message: "must be a URL"}
	}
	if n := utf8.RuneCountInString(subject); n < 1 || n > 255 || unstorable(subject) {
		return Identity{}, &InvalidError{Field: "subject", Message: "must have 1 to 255 characters"}
	}
	return Identity{Issuer: issuer, Subject: subject}, nil
}

// NewOIDCAccount makes the account of an OpenID Connect identity, which has no password. verifiedEmail is empty if
// the issuer has verified none; the account then gets an address under .invalid (RFC 2606). A name is clipped to 128
// characters and defaults to the e-mail address.
func NewOIDCAccount(issuer, subject, name, verifiedEmail string, now time.Time) (*Account, Identity, error) {
	identity, err := NewOIDCIdentity(issuer, subject)
	if err != nil {
		return nil, Identity{}, err
	}
	name = clipTo(name, longestName)
	var a *Account
	if verifiedEmail == "" {
		sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
		a, err = newAccount(name, hex.EncodeToString(sum[:16])+"@oidc.invalid", "", now)
	} else {
		a, err = New(name, verifiedEmail, "", now)
	}
	if err != nil {
		return nil, Identity{}, err
	}
	return a, identity, nil
}
