package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"regexp"
	"slices"
	"strings"

	"intents.internal/core/identity/account"
)

// maxDeviceAccounts bounds the accounts of one device; the one whose sign-in is oldest is dropped.
const maxDeviceAccounts = 5

// device is a browser that has signed in with a password: a random id, and a MAC of the id for each account. It grants no access,
// only a separate limit, which other clients cannot use up. The key of the MAC is the account's password hash, which has 128
// random bits of salt and stays in the database. So nobody else can create a MAC, a new password or the account's deletion
// invalidates all of them, and cores share no secret.
type device struct {
	id   string
	macs []string // by sign-in, newest first
}

// devicePattern is a rand.Text followed by SHA-256 MACs in base64url.
var devicePattern = regexp.MustCompile(`^[A-Z2-7]{26}(\.[A-Za-z0-9_-]{43}){1,5}$`)

// parseDevice reads a device cookie. Any other text is a device without id.
func parseDevice(cookie string) device {
	if !devicePattern.MatchString(cookie) {
		return device{}
	}
	parts := strings.Split(cookie, ".")
	return device{id: parts[0], macs: parts[1:]}
}

func (d device) String() string { return strings.Join(append([]string{d.id}, d.macs...), ".") }

// signedInTo reports whether the owner has signed in on this device with the current password. It is false for an account without a
// password.
func (d device) signedInTo(owner *account.Account) bool {
	if d.id == "" || owner.PasswordHash == "" {
		return false
	}
	want := []byte(d.mac(owner))
	return slices.ContainsFunc(d.macs, func(mac string) bool { return hmac.Equal([]byte(mac), want) })
}

// signIn returns the device after a sign-in of the owner.
func (d device) signIn(owner *account.Account) device {
	if d.id == "" {
		d.id = rand.Text()
	}
	mac := d.mac(owner)
	others := slices.DeleteFunc(slices.Clone(d.macs), func(other string) bool { return other == mac })
	d.macs = append([]string{mac}, others[:min(len(others), maxDeviceAccounts-1)]...)
	return d
}

func (d device) mac(owner *account.Account) string {
	mac := hmac.New(sha256.New, []byte(owner.PasswordHash))
	mac.Write([]byte("device " + d.id + " " + owner.ID.String()))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// knownDevice returns the client's device if the account of this address has signed in on it, and otherwise none. It queries the
// database only for a client with a device cookie.
func (s *Persons) knownDevice(ctx context.Context, client Client, email string) (device, error) {
	d := parseDevice(client.Device)
	if d.id == "" {
		return device{}, nil
	}
	owner, err := s.Store.AccountByEmail(ctx, email)
	if errors.Is(err, account.ErrNotFound) {
		return device{}, nil
	}
	if err != nil || !d.signedInTo(owner) {
		return device{}, err
	}
	return d, nil
}
