// Package passkeytest is a software authenticator for tests. It answers the options of a relying party as a browser with a platform
// authenticator does, or wrongly in the ways that its fields say.
package passkeytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/google/uuid"
)

// AAGUID is the model of all authenticators of this package.
const AAGUID = "01020304-0506-0708-0102-030405060708"

// The flags of authenticator data (WebAuthn level 3, section 6.1).
const (
	userPresent    = 0x01
	userVerified   = 0x04
	backupEligible = 0x08
	backedUp       = 0x10
	attestedData   = 0x40
)

// Authenticator holds one passkey. Change its fields between ceremonies to answer wrongly.
type Authenticator struct {
	// Origin is the page's, RPID the relying party that signatures are for.
	Origin, RPID string
	// Type replaces that of the client data, Challenge the one of the options; empty for the right ones.
	Type, Challenge string
	// Unverified leaves the flag of user verification out.
	Unverified bool
	// Synced is a passkey that is backed up.
	Synced bool
	// Format is that of the attestation, none if it is empty, and Statement its statement.
	Format    string
	Statement map[string]any
	// Algorithm replaces that in the COSE key, 0 for the right one.
	Algorithm int64
	// SignCount is that of the last use. Counts makes it rise with each use.
	SignCount uint32
	Counts    bool
	// Handle is the user handle that was registered.
	Handle []byte
	// ID is the credential's.
	ID []byte

	key    crypto.Signer
	public map[int64]any
}

// NewEd25519 is an authenticator with an Ed25519 key for the relying party at an origin.
func NewEd25519(tb testing.TB, origin, rpID string) *Authenticator {
	tb.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return newAuthenticator(origin, rpID, private, map[int64]any{
		1: int64(webauthncose.OctetKey), 3: int64(webauthncose.AlgEdDSA), -1: int64(webauthncose.Ed25519), -2: []byte(public),
	})
}

// NewP256 is an authenticator with a P-256 key for the relying party at an origin.
func NewP256(tb testing.TB, origin, rpID string) *Authenticator {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	point, err := private.PublicKey.Bytes() // 4, then both coordinates
	if err != nil {
		tb.Fatal(err)
	}
	return newAuthenticator(origin, rpID, private, map[int64]any{
		1: int64(webauthncose.EllipticKey), 3: int64(webauthncose.AlgES256), -1: int64(webauthncose.P256), -2: point[1:33], -3: point[33:],
	})
}

func newAuthenticator(origin, rpID string, key crypto.Signer, public map[int64]any) *Authenticator {
	a := &Authenticator{Origin: origin, RPID: rpID, Counts: true, ID: make([]byte, 32), key: key, public: public}
	_, _ = rand.Read(a.ID) // it never fails
	return a
}

// Register answers creation options with the JSON of a response.
func (a *Authenticator) Register(tb testing.TB, options []byte) []byte {
	tb.Helper()
	var o struct {
		Challenge string
		User      struct{ ID string }
	}
	decode(tb, options, &o)
	a.Handle = fromBase64(tb, o.User.ID)
	public := a.public
	if a.Algorithm != 0 {
		public = maps.Clone(a.public)
		public[3] = a.Algorithm
	}
	key := encode(tb, public)
	model := uuid.MustParse(AAGUID)
	idLength := binary.BigEndian.AppendUint16(nil, uint16(len(a.ID))) //nolint:gosec // 32
	data := slices.Concat(a.data(attestedData), model[:], idLength, a.ID, key)
	format, statement := a.Format, a.Statement
	if format == "" {
		format = "none"
	}
	if statement == nil {
		statement = map[string]any{}
	}
	object := encode(tb, map[string]any{"fmt": format, "attStmt": statement, "authData": data})
	return a.response(tb, map[string]any{
		"attestationObject": toBase64(object), "clientDataJSON": toBase64(a.clientData(tb, "webauthn.create", o.Challenge)),
		"transports": []string{"internal", "hybrid"}, "authenticatorData": toBase64(data),
	})
}

// Authenticate answers request options with the JSON of a response.
func (a *Authenticator) Authenticate(tb testing.TB, options []byte) []byte {
	tb.Helper()
	var o struct{ Challenge string }
	decode(tb, options, &o)
	data, client := a.data(0), a.clientData(tb, "webauthn.get", o.Challenge)
	return a.response(tb, map[string]any{
		"authenticatorData": toBase64(data), "clientDataJSON": toBase64(client), "signature": toBase64(a.sign(tb, data, client)),
		"userHandle": toBase64(a.Handle),
	})
}

// response is a PublicKeyCredential as JSON.
func (a *Authenticator) response(tb testing.TB, response map[string]any) []byte {
	tb.Helper()
	id := toBase64(a.ID)
	text, err := json.Marshal(map[string]any{
		"id": id, "rawId": id, "type": "public-key", "authenticatorAttachment": "platform", "response": response,
		"clientExtensionResults": map[string]any{"credProps": map[string]any{"rk": true}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// data is the head of authenticator data with further flags. It counts a use.
func (a *Authenticator) data(flags byte) []byte {
	if a.Counts {
		a.SignCount++
	}
	flags |= userPresent
	if !a.Unverified {
		flags |= userVerified
	}
	if a.Synced {
		flags |= backupEligible | backedUp
	}
	hash := sha256.Sum256([]byte(a.RPID))
	return binary.BigEndian.AppendUint32(append(hash[:], flags), a.SignCount)
}

func (a *Authenticator) clientData(tb testing.TB, kind, challenge string) []byte {
	tb.Helper()
	if a.Type != "" {
		kind = a.Type
	}
	if a.Challenge != "" {
		challenge = a.Challenge
	}
	text, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.Origin, "crossOrigin": false})
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func (a *Authenticator) sign(tb testing.TB, data, client []byte) []byte {
	tb.Helper()
	hash := sha256.Sum256(client)
	message, options := slices.Concat(data, hash[:]), crypto.Hash(0)
	if _, ecdsa := a.key.(*ecdsa.PrivateKey); ecdsa {
		digest := sha256.Sum256(message)
		message, options = digest[:], crypto.SHA256
	}
	signature, err := a.key.Sign(rand.Reader, message, options)
	if err != nil {
		tb.Fatal(err)
	}
	return signature
}

func encode(tb testing.TB, value any) []byte {
	tb.Helper()
	encoded, err := webauthncbor.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return encoded
}

func decode(tb testing.TB, text []byte, into any) {
	tb.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		tb.Fatal(err)
	}
}

func toBase64(bytes []byte) string { return base64.RawURLEncoding.EncodeToString(bytes) }

func fromBase64(tb testing.TB, text string) []byte {
	tb.Helper()
	bytes, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		tb.Fatal(err)
	}
	return bytes
}
