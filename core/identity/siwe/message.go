// Package siwe parses Sign-in with Ethereum messages (ERC-4361) and verifies their signatures.
//
// It accepts only the standard's grammar, because a wallet shows people the same text that is checked here. The caller checks that a message
// is for this site and that its nonce is fresh, and asks a node about signatures of smart accounts (ERC-1271).
package siwe

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"intents.internal/pkg/caip"
)

// Message is the text that a wallet signs.
type Message struct {
	// Scheme is empty where the message names none.
	Scheme string
	// Domain is an RFC 3986 authority, so host[:port] where it names a site.
	Domain string
	// Address is in EIP-55 spelling.
	Address   string
	Statement string
	URI       string
	ChainID   uint64
	Nonce     string
	IssuedAt  time.Time
	// ExpirationTime and NotBefore are zero where the message has none.
	ExpirationTime time.Time
	NotBefore      time.Time
	RequestID      string
	Resources      []string

	// text is the signed text, byte for byte.
	text string
}

// SyntaxError is a message that the grammar does not allow.
type SyntaxError struct {
	// Line counts from 1.
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d %s", e.Line, e.Reason) }

const (
	greeting = " wants you to sign in with your Ethereum account:"
	// largestNumber is the last integer that every JSON reader keeps exact.
	largestNumber = 1<<53 - 1
)

// The parts of RFC 3986 and RFC 3339 that the grammar refers to.
const (
	unreserved = `[A-Za-z0-9._~-]`
	escaped    = `%[0-9A-Fa-f]{2}`
	subDelims  = `[!$&'()*+,;=]`
	pchar      = `(?:` + unreserved + `|` + escaped + `|` + subDelims + `|[:@])`
	host       = `(?:\[[0-9A-Fa-f:.]+\]|\[v[0-9A-Fa-f]+\.(?:` + unreserved + `|` + subDelims + `|:)+\]|(?:` + unreserved + `|` + escaped + `|` + subDelims + `)*)`
	authority  = `(?:(?:` + unreserved + `|` + escaped + `|` + subDelims + `|:)*@)?` + host + `(?::[0-9]*)?`
	scheme     = `[A-Za-z][A-Za-z0-9+.-]*`
	segments   = `(?:/` + pchar + `*)*`
	hierarchy  = `(?://` + authority + segments + `|/(?:` + pchar + `+` + segments + `)?|` + pchar + `+` + segments + `)?`
	rest       = `(?:` + pchar + `|[/?])*`
	dateTime   = `\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
)

var (
	origins    = whole(`(?:(` + scheme + `)://)?(` + authority + `)`)
	statements = whole(`(?:[:/?#\[\]@ ]|` + subDelims + `|` + unreserved + `)*`)
	uris       = whole(scheme + `:` + hierarchy + `(?:\?` + rest + `)?(?:#` + rest + `)?`)
	nonces     = whole(`[A-Za-z0-9]{8,}`)
	times      = whole(dateTime)
	requestIDs = whole(pchar + `*`)
)

func whole(form string) *regexp.Regexp { return regexp.MustCompile(`\A(?:` + form + `)\z`) }

// Parse reads a message by the grammar of ERC-4361. It returns a *SyntaxError for anything else, a line feed too many
// included. Beyond the grammar, the address must be in EIP-55 spelling, the chain id 1 to 2^53-1 without leading zeros, and
// a time one that exists; leap seconds are not taken.
func Parse(text string) (*Message, error) {
	p := &parser{lines: strings.Split(text, "\n")}
	m := &Message{text: text}
	p.greeting(m)
	p.statement(m)
	m.URI = p.expect("URI: ", "a URI", uris.MatchString)
	p.expect("Version: ", "1", func(s string) bool { return s == "1" })
	m.ChainID = p.number("Chain ID: ")
	m.Nonce = p.expect("Nonce: ", "8 or more letters and digits", nonces.MatchString)
	m.IssuedAt = p.time("Issued At: ")
	if p.has("Expiration Time: ") {
		m.ExpirationTime = p.time("Expiration Time: ")
	}
	if p.has("Not Before: ") {
		m.NotBefore = p.time("Not Before: ")
	}
	if p.has("Request ID: ") {
		m.RequestID = p.expect("Request ID: ", "characters of a URI's path segment", requestIDs.MatchString)
	}
	if p.has("Resources:") {
		p.expect("Resources:", ", the whole line", isEmpty)
		for p.has("- ") {
			m.Resources = append(m.Resources, p.expect("- ", "a URI", uris.MatchString))
		}
	}
	if p.err == nil && p.at < len(p.lines) {
		p.refuse("is one that the message has no place for")
	}
	if p.err != nil {
		return nil, p.err
	}
	return m, nil
}

// parser goes through the lines once. After the first error it does nothing.
type parser struct {
	lines []string
	at    int
	err   error
}

func (p *parser) refuse(reason string) {
	if p.err == nil {
		p.err = &SyntaxError{Line: p.at + 1, Reason: reason}
	}
}

// has reports whether there is a next line and it begins with label.
func (p *parser) has(label string) bool {
	return p.err == nil && p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], label)
}

// expect takes the next line: label, and then a value that fits.
func (p *parser) expect(label, what string, fits func(string) bool) string {
	if p.has(label) {
		if value := p.lines[p.at][len(label):]; fits(value) {
			p.at++
			return value
		}
	}
	p.refuse("must be " + label + what)
	return ""
}

func (p *parser) blank() { p.expect("", "blank", isEmpty) }

func isEmpty(s string) bool { return s == "" }

func (p *parser) greeting(m *Message) {
	p.expect("", "[scheme://]domain"+greeting, func(s string) bool {
		origin, polite := strings.CutSuffix(s, greeting)
		parts := origins.FindStringSubmatch(origin)
		if !polite || parts == nil || parts[2] == "" {
			return false
		}
		m.Scheme, m.Domain = parts[1], parts[2]
		return true
	})
	m.Address = p.expect("", "an address in EIP-55 spelling", func(s string) bool {
		spelled, err := caip.ParseAddress(s)
		return err == nil && spelled == s
	})
}

// statement takes the blank lines around it too: there are two without a statement, and three with an empty one.
func (p *parser) statement(m *Message) {
	p.blank()
	m.Statement = p.expect("", "a statement of letters, digits, spaces and what else a URI may hold", statements.MatchString)
	if m.Statement != "" || !p.has("URI: ") {
		p.blank()
	}
}

func (p *parser) number(label string) (n uint64) {
	p.expect(label, "an EIP-155 chain id", func(s string) bool {
		var err error
		n, err = strconv.ParseUint(s, 10, 64)
		return err == nil && 1 <= n && n <= largestNumber && s[0] != '0'
	})
	return n
}

func (p *parser) time(label string) (t time.Time) {
	p.expect(label, "an RFC 3339 time such as 2026-11-21T12:00:00Z", func(s string) bool {
		var err error
		t, err = time.Parse(time.RFC3339, strings.ToUpper(s))
		return err == nil && times.MatchString(s)
	})
	return t
}
