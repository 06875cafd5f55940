package mail

import (
	"strings"
	"time"
	"unicode"
)

// InvitationLink is the data of an invitation's message.
type InvitationLink struct {
	Link
	// Account is the name of the account. The message shows it as plainName returns it.
	Account string
	Role    string
}

// Hours returns ValidFor in hours.
func (l InvitationLink) Hours() int { return int(l.ValidFor / time.Hour) }

// Invitation returns the message with the link to an invitation.
func Invitation(to string, link InvitationLink) (*Message, error) {
	link.Account = plainName(link.Account)
	return write(to, "Invitation to an account at "+link.Service, "invitation", link)
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
