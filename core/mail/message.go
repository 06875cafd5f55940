// Package mail writes the service's e-mail, sends it by SMTP, and works through the outbox in the database.
//
// A message is paragraphs of plain text, which its HTML part repeats, and loads no external content. The only user-chosen texts in it
// are addresses and, as plainName returns them, names, so that nobody can send their own text to others through this service.
package mail

import (
	"embed"
	htmltemplate "html/template"
	"strings"
	"text/template"
	"time"
	"unicode"
)

// Message is one mail to one recipient.
type Message struct {
	// To is a bare address (RFC 5322 addr-spec).
	To      string
	Subject string
	Text    string
	HTML    string
}

// Template is the name of a message's template, which begins with the subject.
type Template string

// The templates. Those without other data take a Link.
const (
	ResetPassword Template = "reset-password"
	// SignUp completes a sign-up. It takes Addresses, like the four after it.
	SignUp Template = "sign-up"
	// AddressTaken tells that somebody tried to use the recipient's address although an account has it.
	AddressTaken Template = "address-taken"
	VerifyEmail  Template = "verify-email"
	// ConfirmEmailChange goes to an account's present address, and ChangeEmail to the new one.
	ConfirmEmailChange Template = "confirm-email-change"
	ChangeEmail        Template = "change-email"
	// Invitation takes an InvitationLink, WebhookDisabled a WebhookLink and Notice a SecurityNotice.
	Invitation      Template = "invitation"
	WebhookDisabled Template = "webhook-disabled"
	Notice          Template = "security-notice"
)

//go:embed templates
var templateFiles embed.FS

var (
	textTemplates = template.Must(template.New("").Funcs(template.FuncMap{"plain": plainName}).ParseFS(templateFiles, "templates/*.txt"))
	htmlTemplate  = htmltemplate.Must(htmltemplate.New("message.html").
			Funcs(htmltemplate.FuncMap{"lines": func(s string) []string { return strings.Split(s, "\n") }}).
			ParseFS(templateFiles, "templates/message.html"))
)

// Data is that of a template.
type Data interface{ link() Link }

// Link is the data that every message has.
type Link struct {
	// Service is the public host of the service.
	Service string
	// URL is a paragraph of its own, which the HTML part makes a link.
	URL string
	// ValidFor is a whole number of minutes.
	ValidFor time.Duration
}

func (l Link) link() Link { return l }

// Minutes returns ValidFor in minutes.
func (l Link) Minutes() int { return int(l.ValidFor / time.Minute) }

// Hours returns ValidFor in hours.
func (l Link) Hours() int { return int(l.ValidFor / time.Hour) }

// Addresses is a Link with the addresses in its message. They are ASCII.
type Addresses struct {
	Link
	Email, NewEmail string
}

// InvitationLink is the data of an invitation.
type InvitationLink struct {
	Link
	// Account is the name of the account.
	Account string
	Role    string
}

// WebhookLink is the data of the message that attempts have disabled a webhook. The webhook's URL is not in it, because its author
// chose it.
type WebhookLink struct {
	Link
	// Account is the name of the account.
	Account string
	// Gone is set if the receiver answered 410, otherwise the webhook failed for too long.
	Gone bool
}

// SecurityNotice is the data of the message about an entry in the audit log.
type SecurityNotice struct {
	Link
	// Action is that of the entry, such as password_changed.
	Action string
	// KeyName is that of a new key, of the one that it replaces, or of one that may do more.
	Account, KeyName string
	// Member is the address of a member or of who is invited, with the roles, empty for other actions. NewOwner is set where the role is new
	// and an owner's.
	Member   string
	NewOwner bool
	// At is when it happened.
	At time.Time
	// By is the address of the person who was signed in. Browser and IPAddress are what they used. Each is empty if it is not known.
	By, Browser, IPAddress string
	// PerHour is how many such messages are sent an hour.
	PerHour int
}

// When returns At in UTC.
func (n SecurityNotice) When() string { return n.At.UTC().Format("2 January 2006, 15:04:05 UTC") }

// Write returns a message whose both parts are the paragraphs of a template, which blank lines separate.
func Write(to string, name Template, data Data) (*Message, error) {
	var text, html strings.Builder
	if err := textTemplates.ExecuteTemplate(&text, string(name)+".txt", data); err != nil {
		return nil, err
	}
	header, body, _ := strings.Cut(text.String(), "\n\n")
	subject := strings.TrimPrefix(header, "Subject: ")
	err := htmlTemplate.Execute(&html, map[string]any{
		"Subject": subject, "URL": data.link().URL, "Paragraphs": strings.Split(strings.TrimSpace(body), "\n\n"),
	})
	if err != nil {
		return nil, err
	}
	return &Message{To: to, Subject: subject, Text: body, HTML: html.String()}, nil
}

// longestPlainName bounds a name in characters.
const longestPlainName = 40

// plainName reduces a user-chosen name to letters, digits and spaces, so that it contains no link and no line break.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || strings.ContainsRune("-'&", r) {
			return r
		}
		return ' '
	}, name)
	plain = strings.Join(strings.Fields(plain), " ")
	if runes := []rune(plain); len(runes) > longestPlainName {
		plain = string(runes[:longestPlainName]) + "…"
	}
	if plain == "" {
		return "an account without a plain name"
	}
	return plain
}
