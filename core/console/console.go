// Package console is the signed-in pages below /console: HTML written on the server, with a style sheet and small
// scripts of its own and nothing from elsewhere. Every page works without scripts; asking a wallet needs them.
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

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/access"
	"intents.internal/core/account"
	"intents.internal/core/postgres"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/core/webhook"
	"intents.internal/pkg/caip"
)

// Config is what the console needs; every field must be set but Webhooks, Chains, Reported and Created.
type Config struct {
	Access   *access.Service
	Store    *postgres.Store
	Registry *postgres.LiveRegistry
	Cookie   access.Cookie
	// Webhooks are the operator's rules of webhooks; nil where they are not set up.
	Webhooks *webhook.Rules
	// Chains has the nodes of the chains; nil where no chain has any.
	Chains *rpc.Client
	// Reported is called after a new transaction of an intent was reported, nil for nobody to call. It must return at once.
	Reported func(source caip.ChainID, accountID, transferID uuid.UUID, hash common.Hash)
	// Created is called with each intent that the console recorded or found, and must not wait; nil for nothing.
	Created func(*transfer.Intent)
	// PublicURL is where browsers reach the service, without a path.
	PublicURL string
	Log       *slog.Logger
}

// pageTimeout bounds the work on one page. It is below the gateway's deadline, so that core answers for a slow database.
const pageTimeout = 5 * time.Second

type console struct {
	Config
	pages  pages
	assets assets
}

// currentUser is the signed-in account and its session; both are nil on a public page.
type currentUser struct {
	session *account.Session
	owner   *account.Account
}

// page answers a request, or returns an error and has written nothing.
type page func(w http.ResponseWriter, r *http.Request, user currentUser) error

// New returns the handler of all pages. It rejects cross-origin requests itself, with a page. It leaves the pattern of the route in the
// request.
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
	protection.SetDenyHandler(c.open(func(http.ResponseWriter, *http.Request, currentUser) error { return errCrossOrigin }))
	return protection.Handler(c.routes()), nil
}

func (c *console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+assetsPath+"{name}", c.assets.serve)
	c.openRoutes(mux)
	for pattern, answer := range map[string]page{
		"GET /console":                          c.listKeys,
		"GET /console/keys/{id}":                c.showKey,
		"GET /console/keys/{id}/delete":         c.confirmDeleteKey,
		"GET /console/transfers":                c.listTransfers,
		"GET /console/transfers/{id}":           c.showTransfer,
		"GET /console/transfers/{id}/preflight": c.checkTransfer,
		"GET /console/transfers/{id}/refund":    c.showRefund,
		"GET " + newTransferPath:                c.newTransfer,
		"GET /console/webhooks":                 c.listWebhooks,
		"GET /console/webhooks/{id}":            c.showWebhook,
		"GET /console/webhooks/{id}/delete":     c.confirmDeleteWebhook,
		"GET /console/audit":                    c.listAudit,
		"GET /console/account":                  c.showAccount,
	} {
		mux.Handle(pattern, c.requireSession(answer))
	}
	for path, answer := range map[string]page{
		"/console/keys":                       c.createKey,
		"/console/keys/{id}/rename":           c.renameKey,
		"/console/keys/{id}/enable":           c.enableKey,
		"/console/keys/{id}/disable":          c.disableKey,
		"/console/keys/{id}/expire":           c.expireKey,
		"/console/keys/{id}/rotate":           c.rotateKey,
		"/console/keys/{id}/delete":           c.deleteKey,
		"/console/transfers/{id}/transaction": c.reportTransaction,
		newTransferPath + "/confirm":          c.confirmTransfer,
		newTransferPath + "/record":           c.recordTransfer,
		"/console/webhooks":                   c.createWebhook,
		"/console/webhooks/{id}/change":       c.changeWebhook,
		"/console/webhooks/{id}/enable":       c.enableWebhook,
		"/console/webhooks/{id}/disable":      c.disableWebhook,
		"/console/webhooks/{id}/rotate":       c.rotateSecret,
		"/console/webhooks/{id}/test":         c.testWebhook,
		"/console/webhooks/{id}/replay":       c.replayWebhook,
		"/console/webhooks/{id}/retry":        c.retryDelivery,
		"/console/webhooks/{id}/delete":       c.deleteWebhook,
		"/console/account/revoke-session":     c.revokeSession,
		"/console/account/revoke-others":      c.revokeOtherSessions,
		"/console/account/delete":             c.deleteAccount,
	} {
		mux.Handle("POST "+path, c.requireSession(answer))
		isPage := path == webhooksPath || strings.HasSuffix(path, "{id}/delete")
		if !isPage {
			// Reloading the address of a form's response leads to the page with the form.
			mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { redirect(w, r, parentPath(r.URL.Path)) })
		}
	}
	return mux
}

// openRoutes need no session.
func (c *console) openRoutes(mux *http.ServeMux) {
	for pattern, answer := range map[string]page{
		"GET /console/sign-up":                 c.showSignUp,
		"POST /console/sign-up":                c.signUp,
		"GET /console/sign-in":                 c.showSignIn,
		"POST /console/sign-in":                c.signIn,
		"GET /console/sign-in/openid-connect":  c.startOpenIDConnect,
		"POST /console/sign-in/wallet-message": c.writeWalletMessage,
		"POST /console/sign-out":               c.signOut,
		"/console/":                            func(http.ResponseWriter, *http.Request, currentUser) error { return errNoPage },
	} {
		mux.Handle(pattern, c.open(answer))
	}
	mux.HandleFunc("GET /console/{$}", func(w http.ResponseWriter, r *http.Request) { redirect(w, r, home) })
	mux.HandleFunc("GET /console/sign-out", func(w http.ResponseWriter, r *http.Request) { redirect(w, r, home) })
}

const home = "/console"

// parentPath is the path of the page with a form: forms post one step below it.
func parentPath(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// redirect leads to another page with GET, whatever the method was.
func redirect(w http.ResponseWriter, r *http.Request, target string) {
	protect(w.Header())
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// requireSession calls the page with the current user. Without a session it redirects to the sign-in page, which leads back.
func (c *console) requireSession(answer page) http.Handler {
	return c.open(func(w http.ResponseWriter, r *http.Request, _ currentUser) error {
		user, err := c.authenticate(r)
		if err != nil {
			return err
		}
		if err := answer(w, r, user); err != nil {
			return c.renderError(w, r, user, err)
		}
		return nil
	})
}

func (c *console) authenticate(r *http.Request) (user currentUser, err error) {
	user.session, user.owner, err = c.Access.Session(r.Context(), c.Cookie.Token(r))
	return user, err
}

// open gives a page its deadline and its error pages.
func (c *console) open(answer page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
		defer cancel()
		protect(w.Header())
		r = r.WithContext(ctx)
		if err := recoverPanic(answer, w, r); err != nil {
			if err := c.renderError(w, r, currentUser{}, err); err != nil {
				panic(err) // the error page itself is broken
			}
		}
	})
}

// recoverPanic calls the page and returns a panic as an error, so that one request never ends the process.
func recoverPanic(answer page, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
		}
	}()
	return answer(w, r, currentUser{})
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
