package api

import (
	"net/http"

	"intents.internal/core/access"
	"intents.internal/pkg/wire"
)

// startOIDC answers POST /auth/sign-in/oauth2 with where to send the browser to sign in, and keeps in a cookie what it
// must bring back.
func (s *Server) startOIDC(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		ProviderID  string `json:"providerId"`
		CallbackURL string `json:"callbackURL"`
	}](r)
	if err != nil {
		return err
	}
	if request.ProviderID != "oidc" {
		return invalid(wire.Issue{Path: "/providerId", Message: `must be "oidc"`})
	}
	if request.CallbackURL != "" && !access.LocalPath(request.CallbackURL) {
		return invalid(wire.Issue{Path: "/callbackURL", Message: "must be a path on this site, such as /console"})
	}
	to, flow, err := s.Access.StartOIDC(r.Context(), s.visitor(r))
	if err != nil {
		return err
	}
	s.flowCookie.Set(w, flow, request.CallbackURL)
	return writeJSON(w, http.StatusOK, struct {
		URL      string `json:"url"`
		Redirect bool   `json:"redirect"`
	}{URL: to, Redirect: true})
}
