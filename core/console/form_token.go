package console

import (
	"crypto/rand"
	"crypto/sha256"
)

// Creating a key is the one form whose second copy would do something else than the first. It has a one-time token that is used
// up together with the key's being stored, so a browser that sends it twice, or loads its answer again, makes nothing and is told
// so.

func newFormToken() string { return rand.Text() }

// formToken returns the SHA-256 of the token that was sent with a form, which means nothing in another session.
func formToken(in who, f *form) (hash [32]byte, err error) {
	token := f.values["mark"]
	if len(token) != len(newFormToken()) {
		return hash, errUnknownField
	}
	return sha256.Sum256([]byte("console form " + in.session.ID.String() + " " + token)), nil
}
