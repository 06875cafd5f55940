// Package mail writes the service's e-mail, sends it by SMTP, and works through the outbox in the database.
//
// A message is paragraphs of plain text, which its HTML part repeats, and loads no external content. The only user-chosen texts in it
// are addresses and, as a plain name, an account's name, so that nobody can send their own text to others through this service.
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
	htmlTemplate  = htmltemplate.Must(htmltemplate.New("message.html").
			Funcs(htmltemplate.FuncMap{"lines": func(s string) []string { return strings.Split(s, "\n") }}).
			ParseFS(templateFiles, "templates/message.html"))
)

// Link is the data that every message has.
type Link struct {
	// Service is the public host of the service.
	Service string
	// URL is a paragraph of its own, which the HTML part makes a link.
	URL string
	// ValidFor is a whole number of minutes.
	ValidFor time.Duration
}

// Minutes returns ValidFor in minutes.
func (l Link) Minutes() int { return int(l.ValidFor / time.Minute) }

// ResetPassword returns the message with the link to a new password.
func ResetPassword(to string, link Link) (*Message, error) {
	return write(to, "Reset your password at "+link.Service, "reset-password", link)
}

// SignUp returns the message with the link that completes a sign-up.
func SignUp(to string, link Link) (*Message, error) {
	return write(to, "Confirm your address at "+link.Service, "sign-up", linkTo{link, to, ""})
}

// AddressTaken returns the message that somebody tried to use the recipient's address although an account already has it.
func AddressTaken(to string, link Link) (*Message, error) {
	return write(to, "Your account at "+link.Service, "address-taken", linkTo{link, to, ""})
}

// VerifyEmail returns the message with the link that verifies an account's address.
func VerifyEmail(to string, link Link) (*Message, error) {
	return write(to, "Confirm your address at "+link.Service, "verify-email", linkTo{link, to, ""})
}

// ConfirmEmailChange returns the message to an account's present address.
func ConfirmEmailChange(to, newEmail string, link Link) (*Message, error) {
	return write(to, "Change of your address at "+link.Service, "confirm-email-change", linkTo{link, to, newEmail})
}

// ChangeEmail returns the message to an account's new address.
func ChangeEmail(to string, link Link) (*Message, error) {
	return write(to, "Confirm your new address at "+link.Service, "change-email", linkTo{link, to, ""})
}

// linkTo is a Link with the addresses in its message. They are ASCII, except those of accounts from earlier versions.
type linkTo struct {
	Link
	Email, NewEmail string
}

// data is that of a message's template.
type data interface{ link() Link }

func (l Link) link() Link { return l }

// write renders the paragraphs of a template, which blank lines separate, as both parts of a message.
func write(to, subject, name string, d data) (*Message, error) {
	var text, html strings.Builder
	if err := textTemplates.ExecuteTemplate(&text, name+".txt", d); err != nil {
		return nil, err
	}
	err := htmlTemplate.Execute(&html, map[string]any{
		"Subject": subject, "URL": d.link().URL, "Paragraphs": strings.Split(strings.TrimSpace(text.String()), "\n\n"),
	})
	if err != nil {
		return nil, err
	}
	return &Message{To: to, Subject: subject, Text: text.String(), HTML: html.String()}, nil
}
