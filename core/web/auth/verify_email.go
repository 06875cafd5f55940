package auth

import (
	"errors"
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/apierror"
	"intents.internal/core/web/route"
)

// verifyEmail answers GET /auth/verify-email: it uses the token of a link. With a callbackURL it redirects the browser there,
// with an error code in the parameter error. Links in mails lead to a page of the console instead, because programs that scan
// mail follow links.
func (s *Server) verifyEmail(w http.ResponseWriter, r *http.Request) error {
	given, err := route.Query(r, "token", "callbackURL")
	if err != nil {
		return err
	}
	callback, err := s.Identity.SitePath("callbackURL", given["callbackURL"])
	if err != nil {
		return err
	}
	changed, err := s.Identity.Persons.VerifyEmail(r.Context(), s.client(r), given["token"], callback)
	if code := linkCode(err); callback != "" && (err == nil || code != "") {
		return seeOther(w, identity.WithQuery(callback, "error", code))
	}
	if err != nil {
		return err
	}
	response := struct {
		Status bool      `json:"status"`
		User   *userJSON `json:"user"`
	}{Status: true}
	if changed != nil {
		user := newUserJSON(changed)
		response.User = &user
	}
	return route.WriteJSON(w, http.StatusOK, response)
}

// linkCode returns the error code for a failed link, empty for other errors.
func linkCode(err error) string {
	if !errors.Is(err, identity.ErrLink) && !errors.Is(err, identity.ErrLinkSignedOut) && !errors.Is(err, account.ErrEmailTaken) {
		return ""
	}
	f, _ := apierror.Of(err)
	return string(f.Code)
}
