package auth

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// verifyRegistration answers POST /auth/passkey/verify-registration with the new passkey.
func (s *Server) verifyRegistration(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Response      jsontext.Value         `json:"response"`
		Name          route.Nullable[string] `json:"name"`
		CreateSession route.Nullable[bool]   `json:"createSession"` // better-auth's: ignored, as the browser is signed in
	}](r)
	if err != nil {
		return err
	}
	response, err := readResponse(request.Response)
	if err != nil {
		return err
	}
	passkey, err := s.Identity.Persons.FinishRegistration(
		r.Context(), s.client(r), identity.PrincipalOf(r), s.cookie.Ceremony(r), response, request.Name.Get())
	if err != nil {
		return err
	}
	s.cookie.EndCeremony(w)
	return route.WriteJSON(w, http.StatusOK, newPasskeyJSON(passkey))
}
