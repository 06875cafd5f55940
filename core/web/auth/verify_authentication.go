package auth

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"intents.internal/core/web/route"
)

// verifyAuthentication answers POST /auth/passkey/verify-authentication: it signs in the person of a passkey, or confirms the session of
// that person.
func (s *Server) verifyAuthentication(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Response jsontext.Value `json:"response"`
	}](r)
	if err != nil {
		return err
	}
	response, err := readResponse(request.Response)
	if err != nil {
		return err
	}
	principal, err := optionalSession(r)
	if err != nil {
		return err
	}
	in, err := s.Identity.Persons.FinishAuthentication(r.Context(), s.client(r), principal, s.cookie.Ceremony(r), response)
	if err != nil {
		return err
	}
	s.cookie.EndCeremony(w)
	s.cookie.SignIn(w, in)
	return route.WriteJSON(w, http.StatusOK, struct {
		Session sessionJSON `json:"session"`
		User    userJSON    `json:"user"`
	}{newSessionJSON(in.Session), newUserJSON(in.Account)})
}
