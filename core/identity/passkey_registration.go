package identity

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// Registration is a registration that a browser has begun. Cookie is for Cookie.BeginCeremony.
type Registration struct {
	Options protocol.PublicKeyCredentialCreationOptions
	Cookie  string
}

// StartRegistration begins the registration of a passkey, which needs a fresh session. The name is what the authenticator calls the
// account, the e-mail address if it is empty; attachment is platform, cross-platform or empty for both. It returns ErrPasskeysOff, an
// *account.InvalidError, a *LimitedError and the errors of a confirmation.
func (s *Persons) StartRegistration(ctx context.Context, client Client, p *Principal, name, attachment string) (*Registration, error) {
	if !s.PasskeysOn() {
		return nil, ErrPasskeysOff
	}
	user := passkeyUser{displayName: p.Person.Email}
	if !p.Person.HasEmail() {
		user.displayName = p.Person.Name
	}
	if user.name = user.displayName; name != "" {
		var err error
		if user.name, err = account.ParsePasskeyName(name); err != nil {
			return nil, err
		}
	}
	if !slices.Contains([]string{"", string(protocol.Platform), string(protocol.CrossPlatform)}, attachment) {
		return nil, &account.InvalidError{Field: "authenticatorAttachment", Message: "must be platform or cross-platform"}
	}
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	fresh := make([]byte, account.PasskeyHandleBytes)
	_, _ = rand.Read(fresh) // it never fails
	var registration Registration
	c := s.Change(client, p)
	err := c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) error {
		if _, err := c.Allow(changesPasskeys); err != nil {
			return err
		}
		handle, err := tx.PasskeyHandle(ctx, c.rights, fresh)
		if err != nil {
			return err
		}
		known, err := tx.Passkeys(ctx, p.Person.ID)
		if err != nil {
			return err
		}
		user.handle, user.credentials = handle, credentialsOf(known)
		registration.Options, err = s.creationOptions(user, attachment)
		if err != nil {
			return err
		}
		cookie, hash := newChallenge()
		registration.Cookie = cookie
		challenge := Challenge{PersonID: p.Person.ID, Text: registration.Options.Challenge.String()}
		return tx.InsertChallenge(ctx, hash, challenge, s.Store.Now().Add(ChallengeLifetime))
	})
	if err != nil {
		return nil, err
	}
	return &registration, nil
}

func (s *Persons) creationOptions(user passkeyUser, attachment string) (protocol.PublicKeyCredentialCreationOptions, error) {
	selection := s.relyingParty.Config.AuthenticatorSelection
	selection.AuthenticatorAttachment = protocol.AuthenticatorAttachment(attachment)
	creation, _, err := s.relyingParty.BeginRegistration(user,
		webauthn.WithExclusions(webauthn.Credentials(user.credentials).CredentialDescriptors()),
		webauthn.WithAuthenticatorSelection(selection),
		webauthn.WithCredentialParameters(credentialParameters()))
	if err != nil {
		return protocol.PublicKeyCredentialCreationOptions{}, err
	}
	return creation.Response, nil
}

func credentialParameters() []protocol.CredentialParameter {
	parameters := make([]protocol.CredentialParameter, len(algorithms))
	for n, algorithm := range algorithms {
		parameters[n] = protocol.CredentialParameter{Type: protocol.PublicKeyCredentialType, Algorithm: algorithm}
	}
	return parameters
}

// FinishRegistration stores the passkey of a response to the challenge of a cookie, and confirms the session. The first passkey ends the
// person's other sessions. Without a name it has that of the browser. It returns ErrPasskeysOff, an *account.InvalidError, ErrChallenge,
// ErrRegistration, ErrRegistrationOfOther, account.ErrPasskeyRegistered, account.ErrTooManyPasskeys and the errors of a confirmation.
func (s *Persons) FinishRegistration(
	ctx context.Context, client Client, p *Principal, cookie string, response []byte, name string,
) (*account.Passkey, error) {
	passkey, err := s.finishRegistration(ctx, client, p, cookie, response, name)
	s.passkeys.count(ceremonyRegistration, err)
	return passkey, err
}

func (s *Persons) finishRegistration(
	ctx context.Context, client Client, p *Principal, cookie string, response []byte, name string,
) (*account.Passkey, error) {
	if !s.PasskeysOn() {
		return nil, ErrPasskeysOff
	}
	if name == "" {
		name = account.BrowserName(client.UserAgent)
	}
	name, err := account.ParsePasskeyName(name)
	if err != nil {
		return nil, err
	}
	c := s.Change(client, p)
	if err := c.Confirm(ctx, changesPasskeys); err != nil { // the challenge stays for after the confirmation
		return nil, err
	}
	challenge, err := s.takeChallenge(ctx, cookie)
	if err != nil {
		return nil, err
	}
	if challenge.PersonID != p.Person.ID {
		return nil, ErrRegistrationOfOther
	}
	passkey, err := s.verifyRegistration(challenge, response)
	if err != nil {
		return nil, err
	}
	passkey.PersonID, passkey.Name, passkey.CreatedAt = p.Person.ID, name, s.Store.Now()
	entry := s.entry(client, p.Person.ID, account.PasskeyAdded, name)
	err = c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) (err error) {
		if entry.Notice, err = c.Allow(changesPasskeys); err != nil {
			return err
		}
		return tx.InsertPasskey(ctx, c.rights, passkey, entry)
	})
	if err != nil {
		return nil, err
	}
	return passkey, nil
}

// verifyRegistration returns the passkey of a response, or ErrRegistration.
func (s *Persons) verifyRegistration(challenge Challenge, response []byte) (*account.Passkey, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return nil, refusedBy(ErrRegistration, err)
	}
	// Attestation is not asked for, so that a statement is nothing that anybody would check.
	if format := parsed.Response.AttestationObject.Format; format != string(protocol.AttestationFormatNone) {
		return nil, refusedBy(ErrRegistration, errors.New("the attestation has a format that was not asked for"))
	}
	session := s.ceremony(challenge)
	session.CredParams = credentialParameters()
	credential, err := s.relyingParty.CreateCredential(passkeyUser{}, session, parsed)
	if err != nil {
		return nil, refusedBy(ErrRegistration, err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	aaguid, err := uuid.FromBytes(credential.Authenticator.AAGUID)
	if err != nil {
		return nil, refusedBy(ErrRegistration, err)
	}
	return &account.Passkey{
		ID: id, CredentialID: credential.ID, PublicKey: credential.PublicKey, SignCount: credential.Authenticator.SignCount,
		BackupEligible: credential.Flags.BackupEligible, BackedUp: credential.Flags.BackupState,
		Transports: knownTransports(credential.Transport), AAGUID: aaguid,
	}, nil
}

// ceremony is the state of a ceremony, of which only the challenge is stored.
func (s *Persons) ceremony(challenge Challenge) webauthn.SessionData {
	return webauthn.SessionData{
		Challenge: challenge.Text, RelyingPartyID: s.relyingParty.Config.RPID, UserVerification: protocol.VerificationRequired,
	}
}

// knownTransports leaves out what is no transport: the browser's list is not signed.
func knownTransports(given []protocol.AuthenticatorTransport) []string {
	var known []string
	for _, transport := range given {
		switch transport {
		case protocol.USB, protocol.NFC, protocol.BLE, protocol.SmartCard, protocol.Hybrid, protocol.Internal:
			if text := string(transport); !slices.Contains(known, text) {
				known = append(known, text)
			}
		}
	}
	return known
}
