// Package mail writes the service's e-mail, sends it by SMTP, and works through the outbox in the database.
//
// A message has a plain-text and an HTML part and loads nothing from elsewhere. Of the texts that a visitor chose it contains addresses
// and, as a plain name, that of an account, so that nobody can have this service carry a message to somebody else.
package mail

import (
	"embed"
	htmltemplate "html/template"
	"strings"
	"text/template"
	"time"
)

// Message is one mail to one recipient.
type Message struct {
	// To is a bare address (RFC 5322 addr-spec).
	To      string
	Subject string
	Text    string
	HTML    string
}

//go:embed templates
var templateFiles embed.FS

var (
	textTemplates = template.Must(template.ParseFS(templateFiles, "templates/*.txt"))
	htmlTemplates = htmltemplate.Must(htmltemplate.ParseFS(templateFiles, "templates/*.html"))
)

// Link is what the messages with a link say.
type Link struct {
	// Service is the host of the service as browsers name it.
	Service string
	URL     string
	// ValidFor is a whole number of minutes.
	ValidFor time.Duration
}

// Minutes is ValidFor in minutes.
func (l Link) Minutes() int { return int(l.ValidFor / time.Minute) }

// ResetPassword is the message with the link to a new password.
func ResetPassword(to string, link Link) (*Message, error) {
	return write(to, "Reset your password at "+link.Service, "reset-password", link)
}

// SignUp is the message with the link that ends a sign-up.
func SignUp(to string, link Link) (*Message, error) {
	return write(to, "Confirm your address at "+link.Service, "sign-up", linkTo{link, to, ""})
}

// AddressTaken tells who receives an address' mail that somebody asked to use it although an account has it.
func AddressTaken(to string, link Link) (*Message, error) {
	return write(to, "Your account at "+link.Service, "address-taken", linkTo{link, to, ""})
}

// VerifyEmail is the message with the link that verifies an account's address.
func VerifyEmail(to string, link Link) (*Message, error) {
	return write(to, "Confirm your address at "+link.Service, "verify-email", linkTo{link, to, ""})
}

// ConfirmEmailChange is the message to the address that an account has.
func ConfirmEmailChange(to, newEmail string, link Link) (*Message, error) {
	return write(to, "Change of your address at "+link.Service, "confirm-email-change", linkTo{link, to, newEmail})
}

// ChangeEmail is the message to the address that an account is to get.
func ChangeEmail(to string, link Link) (*Message, error) {
	return write(to, "Confirm your new address at "+link.Service, "change-email", linkTo{link, to, ""})
}

// linkTo is a Link with the addresses that its message names, which are in ASCII but where an account of an earlier version has another.
type linkTo struct {
	Link
	Email, NewEmail string
}

func write(to, subject, name string, data any) (*Message, error) {
	var text, html strings.Builder
	if err := textTemplates.ExecuteTemplate(&text, name+".txt", data); err != nil {
		return nil, err
	}
	if err := htmlTemplates.ExecuteTemplate(&html, name+".html", data); err != nil {
		return nil, err
	}
	return &Message{To: to, Subject: subject, Text: text.String(), HTML: html.String()}, nil
}
