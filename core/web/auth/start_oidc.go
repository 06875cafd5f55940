package auth

import (
	"net/http"

	"intents.internal/core/web/route"
)

// startOIDC answers POST /auth/sign-in/oauth2 with the provider's sign-in URL. It stores the flow in a cookie.
func (s *Server) startOIDC(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		ProviderID  string                 `json:"providerId"`
		CallbackURL route.Nullable[string] `json:"callbackURL"`
	}](r)
	if err != nil {
		return err
	}
	if err := checkStart(request.ProviderID, request.CallbackURL.Get()); err != nil {
		return err
	}
	to, flow, err := s.Identity.Persons.StartOIDC(r.Context(), s.client(r))
	if err != nil {
		return err
	}
	s.flowCookie.Add(w, r, flow, request.CallbackURL.Get())
	return route.WriteJSON(w, http.StatusOK, startedJSON{URL: to, Redirect: true})
}
