package identity

import (
	"bytes"
	"errors"
	"testing"

	"github.com/go-webauthn/webauthn/protocol"

	"intents.internal/core/identity/account"
	"intents.internal/core/identity/passkeytest"
)

const (
	fuzzSite      = "https://intents.example"
	fuzzHost      = "intents.example"
	fuzzChallenge = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	fuzzOptions   = `{"challenge":"` + fuzzChallenge + `","user":{"id":"c29tZWJvZHk"}}`
)

// Any response to a registration is a passkey of this site with user verification, or refused, and never a fault of the service.
func FuzzVerifyRegistration(f *testing.F) {
	f.Add(passkeytest.NewP256(f, fuzzSite, fuzzHost).Register(f, []byte(fuzzOptions)))
	f.Add(passkeytest.NewEd25519(f, fuzzSite, fuzzHost).Register(f, []byte(fuzzOptions)))
	f.Add([]byte(`{"id":"AA","rawId":"AA","type":"public-key","response":{"attestationObject":"o2NmbXRkbm9uZQ","clientDataJSON":"e30"}}`))
	f.Add([]byte(`{}`))
	s := &Persons{relyingParty: newRelyingParty(fuzzSite)}
	f.Fuzz(func(t *testing.T, response []byte) {
		passkey, err := s.verifyRegistration(Challenge{Text: fuzzChallenge}, response)
		switch {
		case err != nil && !errors.Is(err, ErrRegistration):
			t.Errorf("%v", err)
		case err == nil && (len(passkey.CredentialID) == 0 || len(passkey.PublicKey) == 0):
			t.Errorf("the passkey is %+v", passkey)
		case err == nil:
			parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
			if err != nil || !parsed.Response.AttestationObject.AuthData.Flags.UserVerified() || parsed.Response.CollectedClientData.Origin != fuzzSite {
				t.Errorf("registered %+v, %v", parsed, err)
			}
		}
	})
}

// Any response to a sign-in is refused, unless the passkey has signed for this site and verified its user.
func FuzzVerifyAuthentication(f *testing.F) {
	s := &Persons{relyingParty: newRelyingParty(fuzzSite)}
	device := passkeytest.NewEd25519(f, fuzzSite, fuzzHost)
	registered, err := s.verifyRegistration(Challenge{Text: fuzzChallenge}, device.Register(f, []byte(fuzzOptions)))
	if err != nil {
		f.Fatal(err)
	}
	owner := &PasskeyOwner{Account: &account.Account{}, Handle: device.Handle, Passkey: registered}
	f.Add(device.Authenticate(f, []byte(fuzzOptions)))
	device.Unverified = true
	f.Add(device.Authenticate(f, []byte(fuzzOptions)))
	f.Add([]byte(`{"id":"AA","rawId":"AA","type":"public-key","response":{"authenticatorData":"AA","clientDataJSON":"e30","signature":"AA"}}`))
	f.Fuzz(func(t *testing.T, response []byte) {
		parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
		if err != nil {
			return // FinishAuthentication refuses it
		}
		_, err = s.verifyAuthentication(Challenge{Text: fuzzChallenge}, owner, parsed)
		switch {
		case err != nil && !errors.Is(err, ErrAuthentication) && !errors.Is(err, errSignCount):
			t.Errorf("%v", err)
		case err == nil && (!parsed.Response.AuthenticatorData.Flags.UserVerified() || parsed.Response.CollectedClientData.Origin != fuzzSite ||
			!bytes.Equal(parsed.RawID, registered.CredentialID)):
			t.Errorf("accepted %+v", parsed)
		}
	})
}
