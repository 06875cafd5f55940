package console

import (
	"net/http"
	"strings"

	"intents.internal/core/identity/account"
)

const originsPath = keysPath + "/origins"

// updateOrigins answers POST /console/keys/origins with the origins of pages, separated by spaces, commas or newlines.
func (c *console) updateOrigins(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	origins, err := account.ParseOrigins(words(f.values["origins"]))
	if err != nil {
		return "", err
	}
	return keysPath + "?done=origins", c.Identity.Keys.SetOrigins(r.Context(), c.client(r), user.principal, origins)
}

// words splits a text at spaces, commas and newlines.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' })
}

// originLines are the origins in a form: those that it was sent with, or the given ones.
func (f *form) originLines(origins []string) string {
	if sent, ok := f.values["origins"]; ok {
		return sent
	}
	return strings.Join(origins, "\n")
}
