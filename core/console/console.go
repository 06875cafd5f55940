// Package console is the signed-in pages below /console: HTML written on the server, with a style sheet and one small
// script of its own and nothing from elsewhere. Every page works without the script.
//
// It reads through the store, changes things through package access, and owns no rule of either. What goes wrong is
// answered with a page; a fault in a form brings the form back with what was typed, passwords excepted.
package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"intents.internal/core/access"
	"intents.internal/core/account"
	"intents.internal/core/postgres"
)

// Config is what the console needs; every field must be set.
type Config struct {
	Access   *access.Service
	Store    *postgres.Store
	Registry *postgres.LiveRegistry
	Cookie   access.Cookie
	// PublicURL is where browsers reach the service, without a path.
	PublicURL string
	Log       *slog.Logger
}

// pageTimeout bounds the work on one page. It is below the gateway's deadline, so that a slow database is answered for
// here.
const pageTimeout = 5 * time.Second

type console struct {
	Config
	pages  pages
	assets assets
}

// who is signed in.
type who struct {
	session *account.Session
	owner   *account.Account
}

// page answers a request or returns why it did not; then nothing was written yet.
type page func(w http.ResponseWriter, r *http.Request, in who) error

// New returns the handler of all pages. It answers requests from other sites itself, with a page, so it wants no further
// protection against them. The pattern of the route is in the request afterwards.
func New(config Config) (http.Handler, error) {
	c := &console{Config: config, assets: newAssets()}
	var err error
	if c.pages, err = newPages(c.assets); err != nil {
		return nil, err
	}
	protection := http.NewCrossOriginProtection()
	if err := protection.AddTrustedOrigin(config.PublicURL); err != nil {
		return nil, fmt.Errorf("protect the console: %w", err)
	}
	protection.SetDenyHandler(c.open(func(http.ResponseWriter, *http.Request, who) error { return errCrossOrigin }))
	return protection.Handler(c.routes()), nil
}

func (c *console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+assetsPath+"{name}", c.assets.serve)
	c.openRoutes(mux)
	for pattern, answer := range map[string]page{
		"GET /console":                  c.listKeys,
		"GET /console/keys/{id}":        c.showKey,
		"GET /console/keys/{id}/delete": c.confirmDeleteKey,
		"GET /console/transfers":        c.listTransfers,
		"GET /console/transfers/{id}":   c.showTransfer,
		"GET /console/audit":            c.listAudit,
		"GET /console/account":          c.showAccount,
	} {
		mux.Handle(pattern, c.signedIn(answer))
	}
	for path, answer := range map[string]page{
		"/console/keys":                   c.createKey,
		"/console/keys/{id}/rename":       c.renameKey,
		"/console/keys/{id}/enable":       c.enableKey,
		"/console/keys/{id}/disable":      c.disableKey,
		"/console/keys/{id}/expire":       c.expireKey,
		"/console/keys/{id}/rotate":       c.rotateKey,
		"/console/keys/{id}/delete":       c.deleteKey,
		"/console/account/revoke-session": c.revokeSession,
		"/console/account/revoke-others":  c.revokeOtherSessions,
		"/console/account/delete":         c.deleteAccount,
	} {
		mux.Handle("POST "+path, c.signedIn(answer))
		if path != "/console/keys/{id}/delete" {
			// Somebody who loads the address of a form's answer again gets the page with the form.
			mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { redirect(w, r, above(r.URL.Path)) })
		}
	}
	return mux
}

// openRoutes are those for which nobody needs to be signed in.
func (c *console) openRoutes(mux *http.ServeMux) {
	for pattern, answer := range map[string]page{
		"GET /console/sign-up":                 c.showSignUp,
		"POST /console/sign-up":                c.signUp,
		"GET /console/sign-in":                 c.showSignIn,
		"POST /console/sign-in":                c.signIn,
		"GET /console/sign-in/openid-connect":  c.startOpenIDConnect,
		"POST /console/sign-in/wallet-message": c.writeWalletMessage,
		"POST /console/sign-out":               c.signOut,
		"/console/":                            func(http.ResponseWriter, *http.Request, who) error { return errNoPage },
	} {
		mux.Handle(pattern, c.open(answer))
	}
	mux.HandleFunc("GET /console/{$}", func(w http.ResponseWriter, r *http.Request) { redirect(w, r, home) })
	mux.HandleFunc("GET /console/sign-out", func(w http.ResponseWriter, r *http.Request) { redirect(w, r, home) })
}

const home = "/console"

// above is the page that a form stands on: forms post one step below it.
func above(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// redirect goes on to another page with GET, whatever the method was.
func redirect(w http.ResponseWriter, r *http.Request, target string) {
	protect(w.Header())
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// signedIn finds out who asks and sends strangers to sign in, back to the same page afterwards.
func (c *console) signedIn(answer page) http.Handler {
	return c.open(func(w http.ResponseWriter, r *http.Request, _ who) error {
		in, err := c.recognize(r)
		if err != nil {
			return err
		}
		if err := answer(w, r, in); err != nil {
			return c.refuse(w, r, in, err)
		}
		return nil
	})
}

func (c *console) recognize(r *http.Request) (in who, err error) {
	in.session, in.owner, err = c.Access.Session(r.Context(), c.Cookie.Token(r))
	return in, err
}

// open gives a page its deadline and its error pages.
func (c *console) open(answer page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
		defer cancel()
		protect(w.Header())
		r = r.WithContext(ctx)
		if err := attempt(answer, w, r); err != nil {
			if err := c.refuse(w, r, who{}, err); err != nil {
				panic(err) // the error page itself is broken
			}
		}
	})
}

// attempt turns a panic into an error, so that one bad request never takes the process down.
func attempt(answer page, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
		}
	}()
	return answer(w, r, who{})
}

// protect sets the headers of every page. Nothing of a page may be kept, framed or loaded from elsewhere.
func protect(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("Cache-Control", "no-store")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
}
