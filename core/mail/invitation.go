package mail

import (
	"strings"
	"time"
	"unicode"
)

// InvitationLink is what an invitation says.
type InvitationLink struct {
	Link
	// Account is the name of the account. The message has it as plainName writes it.
	Account string
	Role    string
}

// Hours is ValidFor in hours.
func (l InvitationLink) Hours() int { return int(l.ValidFor / time.Hour) }

// Invitation is the message with the link to an invitation.
func Invitation(to string, link InvitationLink) (*Message, error) {
	link.Account = plainName(link.Account)
	return write(to, "Invitation to an account at "+link.Service, "invitation", link)
}

// longestPlainName is in characters.
const longestPlainName = 40

// plainName writes a name that somebody chose so that it is no more than a name: letters, digits and spaces, and nothing that a mail program
// makes a link or a second line of.
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
