package api

import (
	"net/http"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// listTokens answers GET /v2/tokens with the registry's tokens, those of one chain if chain-id is set. A well-formed unknown
// chain has none.
func (s *Server) listTokens(w http.ResponseWriter, r *http.Request) error {
	parameters, err := query(r, "chain-id")
	if err != nil {
		return err
	}
	current, err := s.catalog.of(s.Registry.Current())
	if err != nil {
		return err
	}
	filter, filtered := parameters["chain-id"]
	if !filtered {
		current.tokens.serve(w, r)
		return nil
	}
	id, err := caip.ParseChainID(filter)
	if err != nil {
		return invalid(wire.Issue{Path: "chain-id", Message: err.Error()})
	}
	tokens, ok := current.tokensOn[id]
	if !ok {
		tokens = current.noTokens
	}
	tokens.serve(w, r)
	return nil
}
