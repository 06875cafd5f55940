package registry

import (
	"slices"
	"strings"

	"intents.internal/pkg/caip"
)

// tokenWords are what a search finds a token by, in lower case.
type tokenWords struct{ symbol, name string }

func wordsOf(t Token) tokenWords {
	return tokenWords{strings.ToLower(t.Symbol), strings.ToLower(t.Name)}
}

// The ranks of a find, the best first.
const (
	rankExact = iota
	rankPrefix
	rankWithin
	ranks
)

// rank returns false if the token has not the text, which is in lower case.
func (w tokenWords) rank(text string) (rank int, found bool) {
	switch {
	case w.symbol == text || w.name == text:
		return rankExact, true
	case strings.HasPrefix(w.symbol, text) || strings.HasPrefix(w.name, text):
		return rankPrefix, true
	default:
		return rankWithin, strings.Contains(w.symbol, text) || strings.Contains(w.name, text)
	}
}

// Search returns the tokens that have the text in their symbol or name, or have it as their address or CAIP-10 id, without regard to case. on is the
// chain whose tokens are searched, the zero value for all. At most limit are returned: those whose symbol or name is the text come first, then those
// that begin with it, each in the order of Tokens.
func (s *Snapshot) Search(text string, on caip.ChainID, limit int) []Token {
	text = strings.ToLower(text)
	address, err := caip.ParseAddress(text)
	if id, idErr := caip.ParseAccountID(text); idErr == nil {
		address, err = id.Address, nil
		if on == (caip.ChainID{}) {
			on = id.Chain
		}
		if on != id.Chain {
			return nil
		}
	}
	var found [ranks][]Token
	for i, t := range s.Tokens {
		if on != (caip.ChainID{}) && t.ID.Chain != on {
			continue
		}
		rank, ok := s.words[i].rank(text)
		if err == nil && t.ID.Address == address {
			rank, ok = rankExact, true
		}
		if ok && len(found[rank]) < limit {
			found[rank] = append(found[rank], t)
		}
	}
	all := slices.Concat(found[:]...)
	return all[:min(limit, len(all))]
}
