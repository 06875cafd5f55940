package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/loopback"
)

const (
	// ChallengeLifetime is how long a WebAuthn ceremony may take, as in better-auth.
	ChallengeLifetime = 5 * time.Minute
	// ceremonyTimeout is what browsers are told.
	ceremonyTimeout = time.Minute
	// relyingPartyName is shown by authenticators.
	relyingPartyName = "Transfer Intents"
)

// The errors of passkeys, in addition to those of package account.
var (
	// ErrPasskeysOff means that CORE_PUBLIC_URL has no domain, or no TLS: browsers know no passkeys there.
	ErrPasskeysOff = errors.New("passkeys are not configured")
	// ErrChallenge means that the browser began no ceremony, or that its challenge was used or has expired.
	ErrChallenge = errors.New("no such challenge")
	// ErrRegistration means that the response does not register a passkey for the challenge at this site.
	ErrRegistration = errors.New("the passkey is not registered")
	// ErrRegistrationOfOther means that another person began the registration.
	ErrRegistrationOfOther = errors.New("another person began the registration")
	// ErrUnknownPasskey means that nobody has the passkey of a response.
	ErrUnknownPasskey = errors.New("nobody has the passkey")
	// ErrAuthentication means that the response does not prove a passkey for the challenge at this site.
	ErrAuthentication = errors.New("the passkey is not proven")
)

// algorithms are those that a passkey may have: Ed25519, ECDSA with P-256, and RSA (RFC 9053, RFC 8812).
var algorithms = []webauthncose.COSEAlgorithmIdentifier{webauthncose.AlgEdDSA, webauthncose.AlgES256, webauthncose.AlgRS256}

// newRelyingParty is the relying party at a public URL, nil for a URL where browsers know no passkeys: they take domains alone, over TLS
// or on localhost (WebAuthn level 3, section 5.1.2).
func newRelyingParty(publicURL string) *webauthn.WebAuthn {
	u, err := url.Parse(publicURL)
	if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil {
		return nil
	}
	if u.Scheme != "https" && !loopback.IsName(u.Hostname()) {
		return nil
	}
	timeout := webauthn.TimeoutConfig{Timeout: ceremonyTimeout, TimeoutUVD: ceremonyTimeout}
	site, err := webauthn.New(&webauthn.Config{
		RPID: u.Hostname(), RPDisplayName: relyingPartyName, RPOrigins: []string{originOf(u)},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: protocol.VerificationRequired,
		},
		Timeouts: webauthn.TimeoutsConfig{Login: timeout, Registration: timeout},
		// A client may return outputs that nobody asked for, which a relying party ignores (WebAuthn level 3, section 9).
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if err != nil {
		return nil
	}
	return site
}

// PasskeysOn reports whether people can have passkeys at the public URL.
func (s *Persons) PasskeysOn() bool { return s.relyingParty != nil }

// Passkeys lists the passkeys of a person, oldest first. It returns ErrPasskeysOff.
func (s *Persons) Passkeys(ctx context.Context, person uuid.UUID) ([]*account.Passkey, error) {
	if !s.PasskeysOn() {
		return nil, ErrPasskeysOff
	}
	return s.Store.Passkeys(ctx, person)
}

// RenamePasskey renames a passkey of a person. It returns ErrPasskeysOff, an *account.InvalidError, and account.ErrNoPasskey.
func (s *Persons) RenamePasskey(ctx context.Context, client Client, p *Principal, id uuid.UUID, name string) (passkey *account.Passkey, err error) {
	if !s.PasskeysOn() {
		return nil, ErrPasskeysOff
	}
	if name, err = account.ParsePasskeyName(name); err != nil {
		return nil, err
	}
	c := s.Change(client, p)
	err = c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) (err error) {
		passkey, err = tx.RenamePasskey(ctx, c.rights, id, name)
		return err
	})
	return passkey, err
}

// DeletePasskey removes a passkey of a person, which needs a fresh session. It returns ErrPasskeysOff, account.ErrNoPasskey,
// account.ErrLastWayIn, ErrSecondFactor for the last passkey of an owner of live keys where these need one, and the errors of a
// confirmation.
func (s *Persons) DeletePasskey(ctx context.Context, client Client, p *Principal, id uuid.UUID) error {
	if !s.PasskeysOn() {
		return ErrPasskeysOff
	}
	entry := s.entry(client, p.Person.ID, account.PasskeyDeleted, "")
	c := s.Change(client, p)
	return c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) (err error) {
		passkeys, err := tx.Passkeys(ctx, p.Person.ID)
		if err != nil {
			return err
		}
		for _, passkey := range passkeys {
			if passkey.ID == id {
				entry.Detail = passkey.Name
			}
		}
		if entry.Notice, err = c.Allow(changesPasskeys); err != nil {
			return err
		}
		if err := tx.DeletePasskey(ctx, c.rights, id, entry); err != nil || len(passkeys) > 1 {
			return err
		}
		return c.canLoseLastPasskey(ctx, tx)
	})
}

// canLoseLastPasskey returns account.ErrLastWayIn or ErrSecondFactor for a person who has just lost the last passkey.
func (c *Change) canLoseLastPasskey(ctx context.Context, tx Tx) error {
	person := c.rights.Person
	if person.PasswordHash == "" {
		other, err := tx.HasIdentityOf(ctx, person.ID, c.service.issuers())
		if err != nil {
			return err
		}
		if !other {
			return account.ErrLastWayIn
		}
	}
	if !c.service.SecondFactor {
		return nil
	}
	owns, err := tx.OwnsLiveKeys(ctx, person.ID)
	if err == nil && owns {
		err = ErrSecondFactor
	}
	return err
}

// newChallenge returns the browser's cookie of a new challenge and its hash.
func newChallenge() (cookie string, hash [32]byte) {
	cookie = rand.Text() + rand.Text()
	return cookie, sha256.Sum256([]byte(cookie))
}

// takeChallenge uses the challenge of a cookie. It returns ErrChallenge.
func (s *Persons) takeChallenge(ctx context.Context, cookie string) (Challenge, error) {
	if cookie == "" {
		return Challenge{}, ErrChallenge
	}
	challenge, err := s.Store.TakeChallenge(ctx, sha256.Sum256([]byte(cookie)), s.Store.Now())
	if errors.Is(err, account.ErrNotFound) {
		return challenge, ErrChallenge
	}
	return challenge, err
}

// passkeyUser is a person as package webauthn sees one.
type passkeyUser struct {
	handle            []byte
	name, displayName string
	credentials       []webauthn.Credential
}

func (u passkeyUser) WebAuthnID() []byte                         { return u.handle }
func (u passkeyUser) WebAuthnName() string                       { return u.name }
func (u passkeyUser) WebAuthnDisplayName() string                { return u.displayName }
func (u passkeyUser) WebAuthnCredentials() []webauthn.Credential { return u.credentials }

// credentialOf is a passkey as package webauthn sees one.
func credentialOf(p *account.Passkey) webauthn.Credential {
	transports := make([]protocol.AuthenticatorTransport, len(p.Transports))
	for n, transport := range p.Transports {
		transports[n] = protocol.AuthenticatorTransport(transport)
	}
	return webauthn.Credential{
		ID: p.CredentialID, PublicKey: p.PublicKey, AttestationType: string(protocol.AttestationFormatNone), Transport: transports,
		Flags:         webauthn.CredentialFlags{UserPresent: true, UserVerified: true, BackupEligible: p.BackupEligible, BackupState: p.BackedUp},
		Authenticator: webauthn.Authenticator{AAGUID: p.AAGUID[:], SignCount: p.SignCount},
	}
}

func credentialsOf(passkeys []*account.Passkey) []webauthn.Credential {
	credentials := make([]webauthn.Credential, len(passkeys))
	for n, p := range passkeys {
		credentials[n] = credentialOf(p)
	}
	return credentials
}

// refusedBy joins what clients see of a refusal with its cause.
func refusedBy(public, cause error) error { return fmt.Errorf("%w: %w", public, cause) }
