package account

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"intents.internal/pkg/caip"
)

// WalletIssuer is the issuer of wallets with a private key (EOAs), which have the same address on every chain.
const WalletIssuer = "eip155"

// MaxIdentities is the maximum number of identities of one account.
const MaxIdentities = 10

// Identity is a way to sign in other than the password: the `sub` of an OpenID Connect issuer, or a wallet, whose issuer is
// WalletIssuer and whose subject is its address in lower case. The issuer of a smart account is the CAIP-2 id of its chain, such
// as eip155:1, because the same address on another chain may be another person's contract.
type Identity struct {
	Issuer  string
	Subject string
}

// LinkedIdentity is an identity of an account.
type LinkedIdentity struct {
	Identity
	LinkedAt time.Time
}

// NewWalletIdentity parses a wallet's address, in lower case or with its EIP-55 checksum. It returns an *InvalidError for any
// other text.
func NewWalletIdentity(address string) (Identity, error) {
	return newWalletIdentity(WalletIssuer, address)
}

// NewSmartAccountIdentity is NewWalletIdentity for a smart account on a chain.
func NewSmartAccountIdentity(chain caip.ChainID, address string) (Identity, error) {
	return newWalletIdentity(chain.String(), address)
}

func newWalletIdentity(issuer, address string) (Identity, error) {
	spelled, err := caip.ParseAddress(address)
	if err != nil {
		return Identity{}, &InvalidError{Field: "walletAddress", Message: err.Error()}
	}
	return Identity{Issuer: issuer, Subject: strings.ToLower(spelled)}, nil
}

// IsWallet reports whether the identity is a wallet. The chain is the smart account's, the zero value for a wallet with a private
// key.
func (i Identity) IsWallet() (chain caip.ChainID, wallet bool) {
	if i.Issuer == WalletIssuer {
		return caip.ChainID{}, true
	}
	chain, err := caip.ParseChainID(i.Issuer)
	return chain, err == nil && chain.Namespace == caip.EIP155
}

// Address returns a wallet's address in EIP-55 spelling, empty for any other identity.
func (i Identity) Address() string {
	if _, wallet := i.IsWallet(); !wallet {
		return ""
	}
	spelled, err := caip.ParseAddress(i.Subject)
	if err != nil {
		return ""
	}
	return spelled
}

// Placeholder returns the address under .invalid (RFC 2606) for an account without an e-mail address that this identity created.
func (i Identity) Placeholder() string {
	chain, wallet := i.IsWallet()
	switch {
	case !wallet:
		sum := sha256.Sum256([]byte(i.Issuer + "\x00" + i.Subject))
		return hex.EncodeToString(sum[:16]) + "@oidc.invalid"
	case chain.Reference != "":
		return i.Subject + "@" + chain.Reference + "." + chain.Namespace + ".invalid"
	}
	return i.Subject + "@" + WalletIssuer + ".invalid"
}

// String returns the identity as the audit log and pages show it.
func (i Identity) String() string {
	chain, wallet := i.IsWallet()
	switch {
	case !wallet:
		return i.Subject + " at " + i.Issuer
	case chain.Reference != "":
		return "smart account " + i.Address() + " on " + chain.String()
	}
	return "wallet " + i.Address()
}

// NewWalletAccount creates the account of a wallet, without a password. Its name is the address in EIP-55 spelling.
func NewWalletAccount(wallet Identity, now time.Time) (*Account, error) {
	return newAccount(wallet.Address(), wallet.Placeholder(), "", now)
}

// NewOIDCIdentity takes the iss and sub claims of a verified ID token: an issuer's URL and a subject of at most 255 characters
// (OpenID Connect Core, section 2).
func NewOIDCIdentity(issuer, subject string) (Identity, error) {
	if !strings.HasPrefix(issuer, "https://") && !strings.HasPrefix(issuer, "http://") || len(issuer) > 2048 || unstorable(issuer) {
		return Identity{}, &InvalidError{Field: "issuer", Message: "must be a URL"}
	}
	if n := utf8.RuneCountInString(subject); n < 1 || n > 255 || unstorable(subject) {
		return Identity{}, &InvalidError{Field: "subject", Message: "must have 1 to 255 characters"}
	}
	return Identity{Issuer: issuer, Subject: subject}, nil
}

// NewOIDCAccount creates the account of an OpenID Connect identity, without a password. verifiedEmail is empty if the issuer has
// verified none; the account then gets an address under .invalid (RFC 2606). The name is truncated to 128 characters and defaults
// to the e-mail address.
func NewOIDCAccount(issuer, subject, name, verifiedEmail string, now time.Time) (*Account, Identity, error) {
	identity, err := NewOIDCIdentity(issuer, subject)
	if err != nil {
		return nil, Identity{}, err
	}
	name = clipTo(name, longestName)
	var a *Account
	if verifiedEmail == "" {
		a, err = newAccount(name, identity.Placeholder(), "", now)
	} else {
		a, err = New(name, verifiedEmail, "", now)
	}
	if err != nil {
		return nil, Identity{}, err
	}
	if verifiedEmail != "" {
		a.EmailVerifiedAt = now
	}
	return a, identity, nil
}
