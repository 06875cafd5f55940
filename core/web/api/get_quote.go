package api

import (
	"net/http"

	"intents.internal/core/web/route"
)

// getQuote answers GET /v2/quotes/{id}, also for a quote that has expired. Another account's or environment's quote gets the same response as
// one that does not exist.
func (s *Server) getQuote(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	if _, err := route.Query(r); err != nil {
		return err
	}
	found, err := s.Quotes.Find(r.Context(), by.AccountID, by.Environment, r.PathValue("id"))
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, newQuoteJSON(found))
}
