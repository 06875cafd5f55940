package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// linkOIDC answers POST /auth/oauth2/link with the URL at which the browser links the provider's identity to the account.
func (s *Server) linkOIDC(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		ProviderID  string                 `json:"providerId"`
		CallbackURL route.Nullable[string] `json:"callbackURL"`
		Password    string                 `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	if err := checkStart(request.ProviderID, request.CallbackURL.Get()); err != nil {
		return err
	}
	to, flow, err := s.Identity.Persons.StartLink(r.Context(), s.confirming(r, request.Password), identity.PrincipalOf(r))
	if err != nil {
		return err
	}
	s.flowCookie.Add(w, r, flow, request.CallbackURL.Get())
	return route.WriteJSON(w, http.StatusOK, startedJSON{URL: to, Redirect: true})
}

// checkStart validates the request that starts a flow.
func checkStart(provider, callback string) error {
	if provider != oidcProvider {
		return route.Invalid(wire.Issue{Path: "/providerId", Message: `must be "oidc"`})
	}
	if callback != "" && !identity.LocalPath(callback) {
		return route.Invalid(wire.Issue{Path: "/callbackURL", Message: "must be a path on this site, such as /console"})
	}
	return nil
}

// startedJSON is the URL to open in the browser, in better-auth's shape.
type startedJSON struct {
	URL      string `json:"url"`
	Redirect bool   `json:"redirect"`
}
