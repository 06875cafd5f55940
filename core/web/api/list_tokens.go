package api

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"intents.internal/core/web/route"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// The bounds of a search: the characters of its text, and the tokens that it answers.
const (
	maxSearchLength = 64
	maxSearchFinds  = 100
)

// listTokens answers GET /v2/tokens with the registry's tokens, those of one chain if chain-id is set, those that search finds if that is set. A
// well-formed unknown chain has none.
func (s *Server) listTokens(w http.ResponseWriter, r *http.Request) error {
	parameters, err := route.Query(r, "chain-id", "search")
	if err != nil {
		return err
	}
	var chain caip.ChainID
	filter, filtered := parameters["chain-id"]
	if filtered {
		if chain, err = caip.ParseChainID(filter); err != nil {
			return route.Invalid(wire.Issue{Path: "chain-id", Message: err.Error()})
		}
	}
	if text, searched := parameters["search"]; searched {
		return s.searchTokens(w, r, text, chain)
	}
	current, err := s.catalog.of(s.Registry.Current())
	if err != nil {
		return err
	}
	tokens := current.tokens
	if filtered {
		var known bool
		if tokens, known = current.tokensOn[chain]; !known {
			tokens = current.noTokens
		}
	}
	tokens.serve(w, r)
	return nil
}

func (s *Server) searchTokens(w http.ResponseWriter, r *http.Request, text string, chain caip.ChainID) error {
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); n < 1 || n > maxSearchLength {
		return route.Invalid(wire.Issue{Path: "search", Message: fmt.Sprintf("must have 1 to %d characters", maxSearchLength)})
	}
	found, err := packPage(route.Each(s.Registry.Current().Search(text, chain, maxSearchFinds), newTokenJSON))
	if err != nil {
		return err
	}
	found.serve(w, r)
	return nil
}
