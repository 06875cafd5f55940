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

// finishOIDC answers GET /auth/oauth2/callback/oidc, to which the provider redirects the browser: it signs the
// browser in and redirects it. A sign-in that failed ends at the sign-in page, whose `error` is one of a closed set of codes.
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

// errDenied means that the person cancelled the sign-in at the provider.
var errDenied = errors.New("the sign-in was denied at the provider")

// finishFlow ignores the parameters it does not know: providers add their own.
func (s *Server) finishFlow(r *http.Request, flow string) (*access.SignedIn, error) {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w: the answer is malformed", access.ErrOIDC)
	}
	switch code := given.Get("error"); {
	case code == "access_denied":
		return nil, errDenied
	case code != "":
		return nil, fmt.Errorf("%w: the error is %.64q", access.ErrOIDC, code)
	}
	return s.Access.FinishOIDC(r.Context(), s.visitor(r), flow, given.Get("state"), given.Get("code"))
}

// oidcCode is the sign-in page's code for an error, empty for one that is not specific to the sign-in.
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
