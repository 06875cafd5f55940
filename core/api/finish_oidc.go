package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"intents.internal/core/access"
	"intents.internal/core/account"
)

// finishOIDC answers GET /auth/oauth2/callback/oidc, where the provider sends the browser back to: it signs the browser
// in and sends it on. A sign-in that failed ends at the sign-in page, whose `error` is one of a closed set of codes.
func (s *Server) finishOIDC(w http.ResponseWriter, r *http.Request) error {
	flow, callback := s.flowCookie.Flow(r)
	in, err := s.finishFlow(r, flow)
	code := oidcCode(err)
	if err != nil && code == "" {
		return err
	}
	s.flowCookie.Clear(w)
	if err != nil {
		if code == "oidc_failed" {
			s.Log.LogAttrs(r.Context(), slog.LevelWarn, "openid connect sign-in failed", slog.Any("error", err))
		}
		return seeOther(w, "/console/sign-in?error="+code)
	}
	s.cookie.SignIn(w, in)
	if !access.LocalPath(callback) {
		callback = "/console"
	}
	return seeOther(w, callback)
}

// errDenied is a person who did not want to sign in after all.
var errDenied = errors.New("the sign-in was denied at the provider")

// finishFlow ignores the parameters it does not know: providers add their own.
func (s *Server) finishFlow(r *http.Request, flow string) (*access.SignedIn, error) {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w: the answer is malformed", access.ErrOIDC)
	}
	switch problem := given.Get("error"); {
	case problem == "access_denied":
		return nil, errDenied
	case problem != "":
		return nil, fmt.Errorf("%w: it says %.64q", access.ErrOIDC, problem)
	}
	return s.Access.FinishOIDC(r.Context(), s.visitor(r), flow, given.Get("state"), given.Get("code"))
}

// oidcCode is what the sign-in page is told of an error, empty for one that is not the sign-in's own.
func oidcCode(err error) string {
	switch {
	case errors.Is(err, errDenied):
		return "oidc_denied"
	case errors.Is(err, access.ErrFlowExpired):
		return "flow_expired"
	case errors.Is(err, account.ErrEmailTaken):
		return "email_taken"
	case errors.Is(err, access.ErrSignUpClosed):
		return "sign_up_closed"
	case errors.Is(err, access.ErrOIDC), errors.Is(err, access.ErrOIDCUnavailable), errors.Is(err, access.ErrAccountDisabled):
		return "oidc_failed"
	}
	return ""
}

func seeOther(w http.ResponseWriter, path string) error {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", path)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
