package auth

import (
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-webauthn/webauthn/protocol"

	"intents.internal/core/identity/account"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// passkeyJSON is a passkey in the shape of better-auth's passkey plugin.
type passkeyJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// PublicKey is the COSE key in base64, CredentialID base64url.
	PublicKey    string `json:"publicKey"`
	UserID       string `json:"userId"`
	CredentialID string `json:"credentialID"`
	Counter      uint32 `json:"counter"`
	// DeviceType is multiDevice for a passkey that may be synchronized, BackedUp true for one that is.
	DeviceType string             `json:"deviceType"`
	BackedUp   bool               `json:"backedUp"`
	Transports string             `json:"transports"`
	CreatedAt  transfer.Timestamp `json:"createdAt"`
	AAGUID     string             `json:"aaguid"`
}

func newPasskeyJSON(p *account.Passkey) passkeyJSON {
	deviceType := "singleDevice"
	if p.BackupEligible {
		deviceType = "multiDevice"
	}
	return passkeyJSON{
		ID: p.ID.String(), Name: p.Name, PublicKey: base64.StdEncoding.EncodeToString(p.PublicKey), UserID: p.PersonID.String(),
		CredentialID: base64.RawURLEncoding.EncodeToString(p.CredentialID), Counter: p.SignCount, DeviceType: deviceType, BackedUp: p.BackedUp,
		Transports: strings.Join(p.Transports, ","), CreatedAt: transfer.NewTimestamp(p.CreatedAt), AAGUID: p.AAGUID.String(),
	}
}

// descriptorJSON is a PublicKeyCredentialDescriptorJSON (WebAuthn level 3, section 5.1.8).
type descriptorJSON struct {
	ID         protocol.URLEncodedBase64         `json:"id"`
	Transports []protocol.AuthenticatorTransport `json:"transports,omitempty"`
	Type       protocol.CredentialType           `json:"type"`
}

func newDescriptorJSON(d protocol.CredentialDescriptor) descriptorJSON {
	return descriptorJSON{ID: d.CredentialID, Transports: d.Transport, Type: d.Type}
}

// creationOptionsJSON is a PublicKeyCredentialCreationOptionsJSON (WebAuthn level 3, section 5.1.8) with the members that better-auth
// sends.
type creationOptionsJSON struct {
	Challenge              protocol.URLEncodedBase64       `json:"challenge"`
	RelyingParty           relyingPartyJSON                `json:"rp"`
	User                   protocol.UserEntity             `json:"user"`
	Parameters             []protocol.CredentialParameter  `json:"pubKeyCredParams"`
	Timeout                int                             `json:"timeout"`
	Attestation            protocol.ConveyancePreference   `json:"attestation"`
	ExcludeCredentials     []descriptorJSON                `json:"excludeCredentials"`
	AuthenticatorSelection protocol.AuthenticatorSelection `json:"authenticatorSelection"`
	Extensions             map[string]bool                 `json:"extensions"`
	Hints                  []string                        `json:"hints"`
}

type relyingPartyJSON struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

func newCreationOptionsJSON(o protocol.PublicKeyCredentialCreationOptions) creationOptionsJSON {
	return creationOptionsJSON{
		Challenge: o.Challenge, RelyingParty: relyingPartyJSON{o.RelyingParty.Name, o.RelyingParty.ID}, User: o.User, Parameters: o.Parameters,
		Timeout: o.Timeout, Attestation: o.Attestation, ExcludeCredentials: route.Each(o.CredentialExcludeList, newDescriptorJSON),
		AuthenticatorSelection: o.AuthenticatorSelection, Extensions: map[string]bool{"credProps": true}, Hints: []string{},
	}
}

// requestOptionsJSON is a PublicKeyCredentialRequestOptionsJSON (WebAuthn level 3, section 5.1.9) with the members that better-auth sends.
type requestOptionsJSON struct {
	RelyingPartyID   string                               `json:"rpId"`
	Challenge        protocol.URLEncodedBase64            `json:"challenge"`
	AllowCredentials []descriptorJSON                     `json:"allowCredentials,omitempty"`
	Timeout          int                                  `json:"timeout"`
	UserVerification protocol.UserVerificationRequirement `json:"userVerification"`
}

func newRequestOptionsJSON(o protocol.PublicKeyCredentialRequestOptions) requestOptionsJSON {
	return requestOptionsJSON{
		RelyingPartyID: o.RelyingPartyID, Challenge: o.Challenge, AllowCredentials: route.Each(o.AllowedCredentials, newDescriptorJSON),
		Timeout: o.Timeout, UserVerification: o.UserVerification,
	}
}

// readResponse returns the response of an authenticator, which package identity parses.
func readResponse(response jsontext.Value) ([]byte, error) {
	if response.Kind() != '{' {
		return nil, route.Invalid(wire.Issue{Path: "/response", Message: "must be an object, the response of the authenticator as JSON"})
	}
	return response, nil
}
