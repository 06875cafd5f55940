package api

import (
	"net/http"

	"intents.internal/core/web/route"
)

// listChains answers GET /v2/chains, so that a client can check which transfers, swaps and bridges are available.
func (s *Server) listChains(w http.ResponseWriter, r *http.Request) error {
	if _, err := route.Query(r); err != nil {
		return err
	}
	current, err := s.catalog.of(s.Registry.Current())
	if err != nil {
		return err
	}
	current.chains.serve(w, r)
	return nil
}
