package account

import (
	"crypto/rand"
	"encoding/base64"
	"time"
)

// LinkLifetime is how long a mailed link is valid.
const LinkLifetime = time.Hour

// LinkPurpose is the purpose of a link that verifies an address.
type LinkPurpose string

// The purposes of links. A change of a verified address is confirmed at that address before the new address gets its link.
const (
	VerifyEmail        LinkPurpose = "verify_email"
	ConfirmEmailChange LinkPurpose = "confirm_email_change"
	ChangeEmail        LinkPurpose = "change_email"
)

// NewLinkToken returns the token of a mailed link: 32 random bytes in base64url. Only its HashToken is stored.
func NewLinkToken() string {
	var token [32]byte
	_, _ = rand.Read(token[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(token[:])
}
