package api

import (
	"net/http"

	"intents.internal/core/access"
	"intents.internal/pkg/wire"
)

// linkOIDC answers POST /auth/oauth2/link with where to send the browser to link the provider's identity to the account.
func (s *Server) linkOIDC(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		ProviderID  string `json:"providerId"`
		CallbackURL string `json:"callbackURL"`
		Password    string `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	return s.startLink(w, r, "/providerId", request.ProviderID, request.CallbackURL, request.Password, true)
}

// linkSocial answers POST /auth/link-social, by which better-auth's client names the provider in its core instead of in the plugin.
func (s *Server) linkSocial(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		Provider        string `json:"provider"`
		CallbackURL     string `json:"callbackURL"`
		DisableRedirect bool   `json:"disableRedirect"`
		Password        string `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	return s.startLink(w, r, "/provider", request.Provider, request.CallbackURL, request.Password, !request.DisableRedirect)
}

func (s *Server) startLink(w http.ResponseWriter, r *http.Request, field, provider, callback, password string, redirect bool) error {
	session, owner, err := s.authenticate(r)
	if err != nil {
		return err
	}
	if err := checkStart(field, provider, callback); err != nil {
		return err
	}
	to, flow, err := s.Access.StartLink(r.Context(), s.visitor(r), session, owner, password)
	if err != nil {
		return err
	}
	s.flowCookie.Set(w, flow, callback)
	return writeJSON(w, http.StatusOK, startedJSON{URL: to, Redirect: redirect})
}

// checkStart checks what a flow starts with; field names the provider in the request.
func checkStart(field, provider, callback string) error {
	if provider != oidcProvider {
		return invalid(wire.Issue{Path: field, Message: `must be "oidc"`})
	}
	if callback != "" && !access.LocalPath(callback) {
		return invalid(wire.Issue{Path: "/callbackURL", Message: "must be a path on this site, such as /console"})
	}
	return nil
}

// startedJSON is where to send the browser, in better-auth's shape.
type startedJSON struct {
	URL      string `json:"url"`
	Redirect bool   `json:"redirect"`
}
