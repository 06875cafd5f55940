package console

import (
	"crypto/rand"
	"crypto/sha256"
)

// Creating a key or a webhook is not idempotent, and its text or secret is shown once. The form has a one-time token, which is
// used in the transaction that stores the key or the webhook, so a browser that sends it twice gets account.ErrFormUsed instead
// of a second key or webhook.

func newFormToken() string { return rand.Text() }

// formToken returns the SHA-256 of a form's token and session, so that the token is invalid in another session.
func formToken(user currentUser, f *form) (hash [32]byte, err error) {
	token := f.values["formToken"]
	if len(token) != len(newFormToken()) {
		return hash, errUnknownField
	}
	return sha256.Sum256([]byte("console form " + user.session.ID.String() + " " + token)), nil
}
