package api

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/pkg/wire"
)

// linkOIDC answers POST /auth/oauth2/link with the URL at which the browser links the provider's identity to the account.
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

// linkSocial answers POST /auth/link-social, the route of better-auth's core for the same operation.
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
	to, flow, err := s.Identity.StartLink(r.Context(), s.client(r), session, owner, password)
	if err != nil {
		return err
	}
	s.flowCookie.Set(w, flow, callback)
	return writeJSON(w, http.StatusOK, startedJSON{URL: to, Redirect: redirect})
}

// checkStart validates the request that starts a flow; field is the name of the provider field.
func checkStart(field, provider, callback string) error {
	if provider != oidcProvider {
		return invalid(wire.Issue{Path: field, Message: `must be "oidc"`})
	}
	if callback != "" && !identity.LocalPath(callback) {
		return invalid(wire.Issue{Path: "/callbackURL", Message: "must be a path on this site, such as /console"})
	}
	return nil
}

// startedJSON is the URL to open in the browser, in better-auth's shape.
type startedJSON struct {
	URL      string `json:"url"`
	Redirect bool   `json:"redirect"`
}
