package api

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/identity"
)

// verifyRegistration answers POST /auth/passkey/verify-registration with the new passkey.
func (s *Server) verifyRegistration(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		Response      jsontext.Value   `json:"response"`
		Name          nullable[string] `json:"name"`
		CreateSession nullable[bool]   `json:"createSession"` // better-auth's: ignored, as the browser is signed in
	}](r)
	if err != nil {
		return err
	}
	response, err := readResponse(request.Response)
	if err != nil {
		return err
	}
	passkey, err := s.Identity.FinishRegistration(
		r.Context(), s.client(r), identity.PrincipalOf(r), s.cookie.Ceremony(r), response, request.Name.get())
	if err != nil {
		return err
	}
	s.cookie.EndCeremony(w)
	return writeJSON(w, http.StatusOK, newPasskeyJSON(passkey))
}
