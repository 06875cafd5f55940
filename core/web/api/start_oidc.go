package api

import "net/http"

// startOIDC answers POST /auth/sign-in/oauth2 with the provider's sign-in URL. It stores the flow in a cookie.
func (s *Server) startOIDC(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		ProviderID  string           `json:"providerId"`
		CallbackURL nullable[string] `json:"callbackURL"`
	}](r)
	if err != nil {
		return err
	}
	if err := checkStart(request.ProviderID, request.CallbackURL.get()); err != nil {
		return err
	}
	to, flow, err := s.Identity.StartOIDC(r.Context(), s.client(r))
	if err != nil {
		return err
	}
	s.flowCookie.Add(w, r, flow, request.CallbackURL.get())
	return writeJSON(w, http.StatusOK, startedJSON{URL: to, Redirect: true})
}
