package auth

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

// finishOIDC answers GET /auth/oauth2/callback/oidc, to which the provider redirects the browser. It signs the browser in, or
// links the identity to the signed-in account, and redirects. A failed flow redirects to the sign-in page or the account page,
// with an `error` from a closed set of codes.
func (s *Server) finishOIDC(w http.ResponseWriter, r *http.Request) error {
	startedWith := r.URL.Query().Get("state")
	flow, callback := s.flowCookie.Flow(r, startedWith)
	page, done := "/console/sign-in", "/console"
	finish := s.signInByFlow
	if identity.LinksAccount(flow) {
		page, done, finish = "/console/account", "/console/account?done=linked", s.linkByFlow
	}
	in, err := finish(r, flow)
	code := oidcCode(err)
	if err != nil && code == "" {
		return err
	}
	s.flowCookie.Remove(w, r, startedWith)
	if err != nil {
		if code == "oidc_failed" {
			s.Log.LogAttrs(r.Context(), slog.LevelWarn, "openid connect sign-in failed", slog.Any("error", err))
		}
		return seeOther(w, page+"?error="+code)
	}
	if in != nil {
		s.cookie.SignIn(w, in)
	}
	if !identity.LocalPath(callback) {
		callback = done
	}
	return seeOther(w, callback)
}

// errDenied means that the person cancelled the sign-in at the provider.
var errDenied = errors.New("the sign-in was denied at the provider")

func (s *Server) signInByFlow(r *http.Request, flow string) (*identity.SignedIn, error) {
	state, code, err := readCallback(r)
	if err != nil {
		return nil, err
	}
	return s.Identity.Persons.FinishOIDC(r.Context(), s.client(r), flow, state, code)
}

// linkByFlow starts no session: the browser already has one.
func (s *Server) linkByFlow(r *http.Request, flow string) (*identity.SignedIn, error) {
	state, code, err := readCallback(r)
	if err != nil {
		return nil, err
	}
	return nil, s.Identity.Persons.FinishLink(r.Context(), s.client(r), flow, state, code)
}

// readCallback reads the provider's response. It ignores unknown parameters, because providers add their own.
func readCallback(r *http.Request) (state, code string, err error) {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", "", fmt.Errorf("%w: the answer is malformed", identity.ErrOIDC)
	}
	switch code := given.Get("error"); {
	case code == "access_denied":
		return "", "", errDenied
	case code != "":
		return "", "", fmt.Errorf("%w: the error is %.64q", identity.ErrOIDC, code)
	}
	return given.Get("state"), given.Get("code"), nil
}

// oidcCode returns the page's code for an error, empty for an error that is not specific to the sign-in.
func oidcCode(err error) string {
	switch {
	case errors.Is(err, errDenied):
		return "oidc_denied"
	case errors.Is(err, identity.ErrFlowExpired), errors.Is(err, identity.ErrSignedOut):
		return "flow_expired"
	case errors.Is(err, account.ErrIdentityTaken):
		return "identity_taken"
	case errors.Is(err, account.ErrTooManyIdentities):
		return "too_many_identities"
	case errors.Is(err, account.ErrEmailTaken):
		return "email_taken"
	case errors.Is(err, identity.ErrSignUpClosed):
		return "sign_up_closed"
	case errors.Is(err, identity.ErrOIDC), errors.Is(err, identity.ErrOIDCUnavailable), errors.Is(err, identity.ErrAccountDisabled):
		return "oidc_failed"
	}
	return ""
}

func seeOther(w http.ResponseWriter, path string) error {
	w.Header().Set("Location", path)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
