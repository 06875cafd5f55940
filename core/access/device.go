package access

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

	"intents.internal/core/account"
)

// maxDeviceAccounts bounds the accounts that one browser is known to; the one that signed in longest ago goes first.
const maxDeviceAccounts = 5

// device is a browser that has signed in with a password: a random id, and for each account that did so a MAC of the id. It
// grants no access, only password tries that strangers cannot use up. The key of the MAC is the account's password hash, which
// has 128 random bits of salt and never leaves the database: nobody can make a MAC without it, another password or the
// account's end makes every MAC of it worthless, and no core has to keep or share a secret.
type device struct {
	id   string
	macs []string // the account that signed in last comes first
}

// devicePattern is a rand.Text and then SHA-256 MACs in base64url.
var devicePattern = regexp.MustCompile(`^[A-Z2-7]{26}(\.[A-Za-z0-9_-]{43}){1,5}$`)

// parseDevice reads a device cookie. Any other text is a device without id, which no account knows.
func parseDevice(cookie string) device {
	if !devicePattern.MatchString(cookie) {
		return device{}
	}
	parts := strings.Split(cookie, ".")
	return device{id: parts[0], macs: parts[1:]}
}

func (d device) String() string { return strings.Join(append([]string{d.id}, d.macs...), ".") }

// signedInTo reports whether the owner has signed in here with the password of now. An account without a password knows no
// device.
func (d device) signedInTo(owner *account.Account) bool {
	if d.id == "" || owner.PasswordHash == "" {
		return false
	}
	want := []byte(d.mac(owner))
	return slices.ContainsFunc(d.macs, func(mac string) bool { return hmac.Equal([]byte(mac), want) })
}

// signIn returns the device after the owner has signed in here with the password.
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

// knownDevice returns the visitor's device if the account of this address has signed in there, and otherwise none. It asks the
// database only about visitors who present a device.
func (s *Service) knownDevice(ctx context.Context, v Visitor, email string) (device, error) {
	d := parseDevice(v.Device)
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
