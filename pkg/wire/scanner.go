package wire

import (
	"slices"
	"time"
	"unicode/utf8"

	"intents.internal/pkg/caip"
)

// scanner is the fast path for a transfer request that is written as clients usually write it: valid, with names and strings of
// printable ASCII characters without escapes. It rejects everything else without a reason, even equivalent JSON; the decoder has
// the exact rules and reports the issues.
type scanner struct {
	text string
	at   int
}

// scanTransferRequest reports whether the whole text is a request that the scanner supports. The decoder would return the same
// result. A request with a quote is left to the decoder.
func scanTransferRequest(text string) (r TransferRequest, ok bool) {
	s := scanner{text: text}
	ok = s.object(scannedFields, requiredRequestFields, func(n int) bool {
		switch scannedFields[n] {
		case "source":
			return s.leg(&r.Source, requiredSourceFields)
		case "destination":
			return s.leg(&r.Destination, requiredDestinationFields)
		case "deadline":
			return s.deadline(&r.Deadline)
		default:
			return s.reference(&r.Reference)
		}
	})
	s.skipBlanks()
	return r, ok && s.at == len(s.text)
}

// scannedFields are requestFields without quoteId.
var scannedFields = requestFields[:len(requestFields)-1]

// object parses one object. It calls read at each value, with the index of its name in names. The first required of the names are
// required, and none may be repeated.
func (s *scanner) object(names []string, required int, read func(n int) bool) bool {
	if !s.next('{') {
		return false
	}
	seen := 0
	for {
		name, ok := s.string()
		n := slices.Index(names, name)
		if !ok || n < 0 || seen&(1<<n) != 0 || !s.next(':') || !read(n) {
			return false
		}
		seen |= 1 << n
		if !s.next(',') {
			break
		}
	}
	all := 1<<required - 1
	return s.next('}') && seen&all == all
}

func (s *scanner) leg(leg *Leg, required int) bool {
	return s.object(legFields, required, func(n int) bool {
		switch legFields[n] {
		case "account":
			return s.accountID(&leg.Account)
		case "token":
			return s.accountID(&leg.Token)
		default:
			return s.amount(&leg.Amount)
		}
	})
}

func (s *scanner) accountID(id *caip.AccountID) bool {
	text, ok := s.string()
	if !ok {
		return false
	}
	parsed, err := caip.ParseAccountID(text)
	*id = parsed
	return err == nil
}

func (s *scanner) amount(amount *string) (ok bool) {
	*amount, ok = s.string()
	return ok && IsAmount(*amount)
}

func (s *scanner) deadline(deadline *time.Time) bool {
	text, ok := s.string()
	if !ok {
		return false
	}
	parsed, err := time.Parse(time.RFC3339, text)
	*deadline = parsed.UTC()
	return err == nil
}

func (s *scanner) reference(reference *string) (ok bool) {
	*reference, ok = s.string()
	return ok && len(*reference) >= 1 && len(*reference) <= MaxReferenceLength
}

// string parses one string, a name or a value.
func (s *scanner) string() (text string, ok bool) {
	if !s.next('"') {
		return "", false
	}
	for start := s.at; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[start : s.at-1], true
		case c < ' ', c == '\\', c >= utf8.RuneSelf:
			return "", false
		}
	}
	return "", false
}

// next skips white space, and consumes the given character if it is next.
func (s *scanner) next(c byte) bool {
	s.skipBlanks()
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// skipBlanks skips the white space of RFC 8259 section 2.
func (s *scanner) skipBlanks() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}
