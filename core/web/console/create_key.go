package console

import (
	"net/http"
	"strconv"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// choice is an option of a select.
type choice struct{ Value, Text string }

// never is the choice of no expiry.
const never = "never"

// expiries are the choices of the forms; the API takes any number of seconds.
var expiries = []choice{
	{never, "Never"},
	{days(1), "After 1 day"},
	{days(7), "After 7 days"},
	{days(30), "After 30 days"},
	{days(90), "After 90 days"},
	{days(365), "After 1 year"},
}

func days(n int) string { return strconv.Itoa(n * int(24*time.Hour/time.Second)) }

// parseExpiresIn parses a field that has one of the expiries or another number of seconds.
func (f *form) parseExpiresIn(name string) (time.Duration, error) {
	if f.is(name, never) {
		return 0, nil
	}
	return account.ParseExpiresIn(f.number(name))
}

// createKey answers POST /console/keys with the key, which is shown only once. The response is the page itself: a
// redirect would have to carry the key or store it.
func (c *console) createKey(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	key, text, err := c.makeKey(r, user, f)
	if err != nil {
		return "", err
	}
	return "", c.renderNewKey(w, r, user, newKeyPage{Key: key, Text: text.Reveal()})
}

func (c *console) makeKey(r *http.Request, user currentUser, f *form) (key *account.Key, text apikey.Key, err error) {
	wanted := account.KeyRequest{Name: f.values["name"], Environment: network.Environment(f.values["environment"])}
	if wanted.ExpiresIn, err = f.parseExpiresIn("expiresIn"); err != nil {
		return nil, text, err
	}
	if wanted.Scopes, wanted.Networks, err = f.restrictions(); err != nil {
		return nil, text, err
	}
	// An invalid field is reported before an invalid form token.
	if _, _, err := account.NewKey(user.principal.Account.ID, wanted, c.Now()); err != nil {
		return nil, text, err
	}
	if wanted.FormToken, err = formToken(user, f); err != nil {
		return nil, text, err
	}
	return c.Identity.Keys.Create(r.Context(), c.confirming(r, f), user.principal, wanted)
}

// newKeyPage shows a key's text.
type newKeyPage struct {
	Key  *account.Key
	Text string
	// Replaces is the key that the new one replaces, nil for none. Grace is how long that key stays valid, empty if it is invalid
	// now.
	Replaces *account.Key
	Grace    string
	Curl     string
}

func (c *console) renderNewKey(w http.ResponseWriter, r *http.Request, user currentUser, p newKeyPage) error {
	p.Curl = "curl -H 'x-api-key: " + p.Text + "' " + c.PublicURL + "/v2/chains"
	title := "Your new key"
	if p.Replaces != nil {
		title = "Your key was rotated"
	}
	return c.render(w, r, user, "new-key", view{Title: title, Section: "keys", Of: p.Key.Environment, Body: p})
}
