package account

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

// MaxPasskeys is the maximum number of passkeys of one person: far more than the devices that a person uses.
const MaxPasskeys = 10

// PasskeyHandleBytes is the length of a user handle. It is random, because authenticators show it to whoever holds them (WebAuthn level 3,
// section 14.6.1).
const PasskeyHandleBytes = 32

// The errors of passkeys that callers branch on.
var (
	ErrNoPasskey         = errors.New("no such passkey")
	ErrPasskeyRegistered = errors.New("the passkey is registered already")
	ErrTooManyPasskeys   = errors.New("the person has as many passkeys as possible")
)

// Passkey is a WebAuthn credential of a person.
type Passkey struct {
	ID           uuid.UUID
	PersonID     uuid.UUID
	CredentialID []byte
	// PublicKey is the COSE key.
	PublicKey []byte
	// SignCount is the authenticator's counter at the last use, 0 for one that does not count.
	SignCount uint32
	// BackupEligible means that the authenticator may synchronize the passkey to other devices, and BackedUp that it has.
	BackupEligible, BackedUp bool
	// Transports are how the browser reaches the authenticator, such as internal and hybrid.
	Transports []string
	// AAGUID is the model of the authenticator, uuid.Nil if it does not say.
	AAGUID    uuid.UUID
	Name      string
	CreatedAt time.Time
	// UsedAt is the last sign-in or confirmation, nil for none.
	UsedAt *time.Time
}

// longestPasskeyName is the maximum length of a passkey's name in characters.
const longestPasskeyName = 64

// ParsePasskeyName returns the name of a passkey without surrounding white space. It returns an *InvalidError.
func ParsePasskeyName(s string) (string, error) { return parseName(s, longestPasskeyName) }
