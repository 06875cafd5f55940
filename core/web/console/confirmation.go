package console

import (
	"errors"
	"fmt"
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/apierror"
)

// confirmation is what a form asks for so that its effect is confirmed: the password in place, of a person with a passkey the page that
// confirms with it, or, of a person with neither, another sign-in. The texts are those of the errors, so that a page says the same before a form is sent and after it was refused.
type confirmation struct {
	// Asked is false in a fresh session.
	Asked bool
	// Password is false for a person without one, and for one with a passkey.
	Password bool
	// At is the page that confirms, empty for none.
	At   string
	Text string
	// ID is that of the password's element, and Help what describes it.
	ID   string
	Help fieldHelp
}

// Confirm returns the confirmation of a form by its name, the last step of its path, for forms whose effect may need one. A form that
// there is once for each member also has the member's id; the name is empty on a page with one form.
func (v view) Confirm(name string, person ...any) confirmation {
	if v.needs == nil {
		return confirmation{}
	}
	public, _ := apierror.Of(v.needs)
	c := confirmation{Asked: true, Password: errors.Is(v.needs, identity.ErrPasswordNeeded), Text: public.Page.Text}
	c.ID, c.Help = v.Form.passwordOf(name, person...)
	if errors.Is(v.needs, identity.ErrPasskeyNeeded) {
		c.At = v.confirmAt
	}
	if c.Help.Error == c.Text {
		c.Text = "" // it is the problem already
	}
	if c.Password && c.Text != "" {
		c.Help.Hints = []string{c.ID + "-hint"}
	}
	return c
}

// ConfirmsElsewhere reports whether only a passkey or another sign-in confirms an effect, so that a form would be of no use.
func (v view) ConfirmsElsewhere() bool {
	return errors.Is(v.needs, identity.ErrSignInNeeded) || errors.Is(v.needs, identity.ErrPasskeyNeeded)
}

// NeedsConfirmation reports whether the session is too old for an effect, and ConfirmAt is the page that confirms it.
func (v view) NeedsConfirmation() bool { return v.needs != nil }

// ConfirmAt returns the page that confirms and leads back to this one.
func (v view) ConfirmAt() string { return v.confirmAt }

// Password returns the confirmation of a form that always asks for the password.
func (v view) Password(name string) confirmation {
	c := confirmation{Asked: true, Password: true}
	c.ID, c.Help = v.Form.passwordOf(name)
	return c
}

// passwordOf returns the id and the help of a form's password. Errors are about the form that was sent, whose password has the id that
// they refer to.
func (f *form) passwordOf(name string, person ...any) (id string, help fieldHelp) {
	sent := name == "" || f.sent == name
	id = "password-" + name
	for _, p := range person {
		text := fmt.Sprint(p)
		sent = sent && f.is("person", text)
		id += "-" + text
	}
	if !sent {
		return id, fieldHelp{Name: id}
	}
	return "password", f.At("password")
}

// confirming is the client of a form that confirms its operation by the password, if it has that field.
func (c *console) confirming(r *http.Request, f *form) identity.Client {
	client := c.client(r)
	client.Password = f.values["password"]
	return client
}
