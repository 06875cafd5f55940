// Package console serves the pages below /console for signed-in users: HTML rendered on the server, with its own style sheet and
// small scripts and no third-party content. Every page works without scripts; only wallets and passkeys need them.
//
// It reads from the store and makes changes through packages intent and identity, and has no rules of intents or accounts of its
// own. An error is answered with a page; an error in a form shows the form again with the values, except passwords.
package console

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/quotes"
	"intents.internal/core/registry"
	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
)

// Config is what the console needs; every field except Quotes must be set.
type Config struct {
	Identity   *identity.Service
	Identities *identity.Store
	Transfers  *intents.Store
	Events     *feed.Store
	Webhooks   *webhooks.Service
	Registry   *registry.LiveRegistry
	Intents    *intents.Service
	Cookie     identity.Cookie
	// Quotes asks providers what swaps and bridges bring, nil if none is configured.
	Quotes *quotes.Service
	// Now is the database's clock.
	Now func() time.Time
	// PublicURL is where browsers reach the service, without a path.
	PublicURL string
	Log       *slog.Logger
}

// pageTimeout bounds the work on one page. It is below the gateway's deadline, so that core itself reports a slow database.
const pageTimeout = 5 * time.Second

type console struct {
	Config
	pages  pages
	assets assets
	// unavailable samples the log of pages that the database or another server failed.
	unavailable telemetry.CauseSampler
}

// unavailableLogEvery is the time between two log lines about pages that failed with 503 for one cause.
const unavailableLogEvery = time.Second

// currentUser is the signed-in person, the session, and the account that the session acts on; all are nil on a public page.
type currentUser struct {
	session   *account.Session
	owner     *account.Account
	principal *identity.Principal
	// environment is what lists and the overview show, empty on a public page.
	environment network.Environment
}

// page answers a request, or writes nothing and returns an error.
type page func(w http.ResponseWriter, r *http.Request, user currentUser) error

// New returns the handler of all pages. It rejects cross-origin requests with a page, and sets the request's Pattern to the
// route's.
func New(config Config) (http.Handler, error) {
	c := &console{Config: config, assets: newAssets(), unavailable: telemetry.CauseSampler{Every: unavailableLogEvery}}
	var err error
	if c.pages, err = newPages(c.assets); err != nil {
		return nil, err
	}
	protection := http.NewCrossOriginProtection()
	if err := protection.AddTrustedOrigin(config.PublicURL); err != nil {
		return nil, fmt.Errorf("protect the console: %w", err)
	}
	protection.SetDenyHandler(c.open(func(http.ResponseWriter, *http.Request, currentUser) error { return errCrossOrigin }))
	return c.atPublicHost(protection.Handler(c.routes())), nil
}

// atPublicHost redirects pages that are opened at an IP address of this machine to a public URL at localhost: cookies and passkeys belong to
// that name. Other public URLs are a proxy's to keep to.
func (c *console) atPublicHost(next http.Handler) http.Handler {
	public, err := url.Parse(c.PublicURL)
	if err != nil || public.Hostname() != "localhost" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, port, _ := net.SplitHostPort(r.Host)
		ip := net.ParseIP(host)
		read := r.Method == http.MethodGet || r.Method == http.MethodHead
		if read && ip != nil && ip.IsLoopback() && port == public.Port() {
			r.Pattern = "GET /console"
			redirect(w, r, c.PublicURL+r.URL.RequestURI())
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (c *console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+assetsPath+"{name}", c.assets.serve)
	c.openRoutes(mux)
	pages := c.pageRoutes()
	for pattern, route := range pages {
		mux.Handle(pattern, c.requireSession(route))
	}
	for path, route := range c.formRoutes() {
		mux.Handle("POST "+path, c.requireSession(route))
		if _, isPage := pages["GET "+path]; !isPage {
			// A GET of a form's path, such as a reload, redirects to the page with the form.
			mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { redirect(w, r, parentPath(r.URL.Path)) })
		}
	}
	return mux
}

// sessionRoute is a page that needs a session, and the permission that the user's role in the current account must have.
type sessionRoute struct {
	need   identity.Need
	answer page
}

// pageRoutes are the pages, by their patterns.
func (c *console) pageRoutes() map[string]sessionRoute {
	return map[string]sessionRoute{
		"GET " + home:                   {identity.Read, showPage(c.showOverview)},
		"GET " + keysPath:               {identity.Read, showPage(c.listKeys)},
		"GET /console/keys/{id}":        {identity.Read, showPage(c.showKey)},
		"GET /console/keys/{id}/delete": {identity.Develop, c.confirmDeleteKey},
		"GET /console/search":           {identity.Read, showPage(c.search, "q")},
		"GET /console/transfers":        {identity.Read, showPage(c.listTransfers, append([]string{"after"}, transferFilters...)...)},
		"GET " + transfersCSVPath:       {identity.Read, showPage(c.exportTransfers, transferFilters...)},
		"GET /console/batches/{id}":     {identity.Read, showPage(c.showBatch)},
		"GET /console/transfers/{id}": {identity.Read, func(w http.ResponseWriter, r *http.Request, user currentUser) error {
			return c.showTransfer(w, r, user, &form{})
		}},
		"GET /console/transfers/{id}/preflight": {identity.Read, c.checkTransfer},
		"GET /console/transfers/{id}/refund":    {identity.Develop, c.showRefund},
		"GET /console/transfers/{id}/relay":     {identity.Develop, showPage(c.showRelay)},
		"GET /console/transfers/{id}/revoke":    {identity.Develop, c.showRevocation},
		"GET " + newTransferPath:                {identity.Develop, showPage(c.newTransfer, transferFields...)},
		"GET /console/webhooks":                 {identity.Read, showPage(c.listWebhooks)},
		"GET /console/webhooks/{id}":            {identity.Read, showPage(c.showWebhook, "status", "after")},
		"GET /console/webhooks/{id}/delete":     {identity.Develop, c.confirmDeleteWebhook},
		deliveryPage:                            {identity.Read, showPage(c.showDelivery)},
		"GET " + auditPath:                      {identity.Read, showPage(c.listAudit, append([]string{"before"}, auditFilters...)...)},
		"GET " + auditCSVPath:                   {identity.Read, showPage(c.exportAudit, auditFilters...)},
		"GET /console/account":                  {identity.Person, showPage(c.showAccount, "error")},
		"GET " + passwordPath:                   {identity.Person, showPage(c.showPassword)},
		"GET " + emailPath:                      {identity.Person, showPage(c.showEmail)},
		"GET " + linkPath:                       {identity.Person, showPage(c.showLink)},
		"GET " + unlinkPath:                     {identity.Person, showPage(c.confirmUnlink, "issuer", "subject")},
		"GET " + confirmPath:                    {identity.Person, showPage(c.showConfirm, "next")},
		"GET " + removePasskeyPath:              {identity.Person, showPage(c.confirmRemovePasskey, "passkey")},
		"GET /console/accounts":                 {identity.Person, showPage(c.listAccounts)},
		"GET /console/members":                  {identity.Read, showPage(c.listMembers)},
	}
}

// formRoutes are the forms, by their paths.
func (c *console) formRoutes() map[string]sessionRoute {
	newKey := append([]string{"name", "environment", "expiresIn", "formToken", "password"}, restrictionFields...)
	confirmed := append([]string{"quoteId"}, transferFields...)
	recorded := append([]string{"request", "formToken"}, transferFields...)
	return map[string]sessionRoute{
		keysPath:                              {identity.Develop, submitForm(c.createKey, c.listKeys, newKey...)},
		originsPath:                           {identity.Develop, submitForm(c.updateOrigins, c.listKeys, "origins")},
		"/console/keys/{id}/rename":           {identity.Develop, submitForm(c.renameKey, c.showKey, "name")},
		"/console/keys/{id}/enable":           {identity.Develop, submitForm(c.enableKey, c.showKey, "password")},
		"/console/keys/{id}/disable":          {identity.Develop, submitForm(c.disableKey, c.showKey)},
		"/console/keys/{id}/expire":           {identity.Develop, submitForm(c.expireKey, c.showKey, "expiresIn", "password")},
		"/console/keys/{id}/restrict":         {identity.Develop, submitForm(c.restrictKey, c.showKey, append([]string{"password"}, restrictionFields...)...)},
		"/console/keys/{id}/rotate":           {identity.Develop, submitForm(c.rotateKey, c.showKey, "gracePeriod", "password")},
		"/console/keys/{id}/delete":           {identity.Develop, submitButton(c.deleteKey)},
		"/console/transfers/{id}/transaction": {identity.Develop, submitForm(c.reportTransaction, c.showTransfer, "hash")},
		"/console/transfers/{id}/simulate":    {identity.Develop, submitForm(c.simulateTransfer, c.showTransfer, "status")},
		"/console/transfers/{id}/signature":   {identity.Develop, submitForm(c.signTransfer, c.showTransfer, "signature")},
		newTransferPath + "/confirm":          {identity.Develop, submitForm(c.confirmTransfer, c.renderNewTransfer, confirmed...)},
		newTransferPath + "/record":           {identity.Develop, submitForm(c.recordTransfer, c.renderNewTransfer, recorded...)},
		"/console/webhooks":                   {identity.Develop, submitForm(c.createWebhook, c.listWebhooks, append([]string{"url", "environment", "description", "formToken", "password"}, typeFields()...)...)},
		"/console/webhooks/{id}/change":       {identity.Develop, submitForm(c.changeWebhook, c.showWebhook, append([]string{"url", "description", "password"}, typeFields()...)...)},
		"/console/webhooks/{id}/enable":       {identity.Develop, submitForm(c.enableWebhook, c.showWebhook, "password")},
		"/console/webhooks/{id}/disable":      {identity.Develop, submitForm(c.disableWebhook, c.showWebhook)},
		"/console/webhooks/{id}/rotate":       {identity.Develop, submitForm(c.rotateSecret, c.showWebhook, "gracePeriod", "password")},
		"/console/webhooks/{id}/test":         {identity.Develop, submitForm(c.testWebhook, c.showWebhook, "type")},
		"/console/webhooks/{id}/replay":       {identity.Develop, submitForm(c.replayWebhook, c.showWebhook, "since")},
		"/console/webhooks/{id}/retry":        {identity.Develop, submitForm(c.retryDelivery, c.showWebhook, "event")},
		"/console/webhooks/{id}/delete":       {identity.Develop, submitButton(c.deleteWebhook)},
		"/console/account/revoke-session":     {identity.Person, submitButton(c.revokeSession, "session")},
		"/console/account/revoke-others":      {identity.Person, submitButton(c.revokeOtherSessions)},
		"/console/account/delete":             {identity.Person, submitForm(c.deleteAccount, c.showAccount, "password")},
		passwordPath:                          {identity.Person, submitForm(c.changePassword, c.showPassword, "password", "newPassword")},
		emailPath:                             {identity.Person, submitForm(c.changeEmail, c.showEmail, "newEmail", "password")},
		"/console/account/send-verification":  {identity.Person, submitForm(c.sendVerification, c.showAccount)},
		linkPath + "/openid-connect":          {identity.Person, submitForm(c.linkOpenIDConnect, c.showLink, "password")},
		unlinkPath:                            {identity.Person, submitForm(c.unlink, c.confirmUnlink, "issuer", "subject", "password")},
		confirmPath:                           {identity.Person, submitForm(c.confirmPerson, c.showConfirm, "next", "password")},
		renamePasskeyPath:                     {identity.Person, submitForm(c.renamePasskey, c.showAccount, "passkey", "name")},
		removePasskeyPath:                     {identity.Person, submitForm(c.removePasskey, c.confirmRemovePasskey, "passkey")},
		"/console/accounts/act":               {identity.Person, submitButton(c.actOn, "account")},
		environmentPath:                       {identity.Person, submitButton(c.chooseEnvironment, "environment", "next")},
		"/console/accounts/share":             {identity.Person, submitForm(c.shareAccount, c.listAccounts, "name", "formToken")},
		"/console/members/leave":              {identity.Person, submitForm(c.leaveAccount, c.listMembers)},
		"/console/members/invite":             {identity.Manage, submitForm(c.inviteMember, c.listMembers, "email", "role", "password")},
		"/console/members/cancel":             {identity.Manage, submitButton(c.cancelInvitation, "invitation")},
		"/console/members/change":             {identity.Manage, submitForm(c.changeMember, c.listMembers, "person", "role", "password")},
		"/console/members/remove":             {identity.Manage, submitForm(c.removeMember, c.listMembers, "person", "password")},
		"/console/members/rename":             {identity.Manage, submitForm(c.renameShared, c.listMembers, "name")},
		"/console/members/delete":             {identity.Manage, submitForm(c.deleteShared, c.listMembers, "password")},
		invitationPath + "/accept":            {identity.Person, submitButton(c.acceptInvitation, "token")},
		invitationPath + "/decline":           {identity.Person, submitButton(c.declineInvitation, "token")},
	}
}

// openPages need no session.
func (c *console) openPages() map[string]page {
	return map[string]page{
		"GET /console/sign-up":                 showPage(c.showSignUp, "next"),
		"POST /console/sign-up":                submitForm(c.signUp, c.showSignUp, "name", "email", "password", "next"),
		"GET /console/sign-in":                 showPage(c.showSignIn, "next", "error"),
		"POST /console/sign-in":                submitForm(c.signIn, c.showSignIn, "email", "password", "next"),
		"GET /console/sign-in/openid-connect":  showPage(c.startOpenIDConnect, "next"),
		"POST /console/sign-in/wallet-message": c.writeWalletMessage,
		"POST /console/sign-out":               c.signOut,
		"GET " + forgotPath:                    showPage(c.showForgotPassword),
		"POST " + forgotPath:                   submitForm(c.forgotPassword, c.showForgotPassword, "email"),
		"GET " + resetPath:                     showPage(c.showResetPassword, "token"),
		"POST " + resetPath:                    submitForm(c.resetPassword, c.showResetPassword, "token", "newPassword", "unlinkAccounts"),
		"GET " + identity.LinkPath:             showPage(c.showVerifyEmail, "token", "callbackURL"),
		"POST " + identity.LinkPath:            submitForm(c.followLink, c.showVerifyEmail, "token", "callbackURL", "password"),
		"GET " + invitationPath:                showPage(c.showInvitation, "token"),
		"/console/":                            func(http.ResponseWriter, *http.Request, currentUser) error { return errNoPage },
	}
}

func (c *console) openRoutes(mux *http.ServeMux) {
	for pattern, answer := range c.openPages() {
		mux.Handle(pattern, c.open(func(w http.ResponseWriter, r *http.Request, user currentUser) error {
			visitor, err := c.Identity.Sessions.AdmitAnyone(r.Context(), c.client(r), r.Method)
			if err != nil {
				return err
			}
			return answer(w, identity.WithVisitor(r, visitor), user)
		}))
	}
	mux.HandleFunc("GET /console/{$}", func(w http.ResponseWriter, r *http.Request) { redirect(w, r, home) })
	mux.HandleFunc("GET /console/sign-out", func(w http.ResponseWriter, r *http.Request) { redirect(w, r, home) })
}

// home is the path of the overview, and keysPath of the list of keys; each key's page is below it.
const home, keysPath = "/console", "/console/keys"

// parentPath is the path of the page with a form: forms post one step below it.
func parentPath(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// redirect redirects to another page with GET, regardless of the request's method.
func redirect(w http.ResponseWriter, r *http.Request, target string) {
	protect(w.Header())
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// requireSession calls the page with the current user, whose role must have the route's permission. Without a session it
// redirects to the sign-in page, which returns to this page afterwards.
func (c *console) requireSession(route sessionRoute) http.Handler {
	return c.open(func(w http.ResponseWriter, r *http.Request, _ currentUser) error {
		principal, err := c.Identity.Sessions.Admit(r.Context(), c.client(r), r.Method)
		if err != nil {
			return err
		}
		user := currentUser{session: principal.Session, owner: principal.Person, principal: principal}
		if user.environment, err = c.shownEnvironment(r, user); err == nil {
			err = cmp.Or(checkAccount(r, user), user.principal.Check(route.need))
		}
		if err == nil {
			err = route.answer(w, identity.WithPrincipal(r, user.principal), user)
		}
		if err != nil {
			return c.renderError(w, r, user, err)
		}
		return nil
	})
}

// checkAccount rejects a form that was rendered for another account than the session's current one, see view.On.
func checkAccount(r *http.Request, user currentUser) error {
	named := r.URL.Query().Get("account")
	if r.Method == http.MethodPost && named != "" && named != user.principal.Account.ID.String() {
		return errOtherAccount
	}
	return nil
}

// client describes who sends a request, signed in or not.
func (c *console) client(r *http.Request) identity.Client { return identity.ClientOf(r, c.Cookie) }

// authenticate returns the user of a request, or identity.ErrSignedOut.
func authenticate(r *http.Request) (user currentUser, err error) {
	principal, err := identity.SessionOf(r)
	if err != nil {
		return user, err
	}
	return currentUser{session: principal.Session, owner: principal.Person, principal: principal}, nil
}

// open gives a page its deadline and its error pages.
func (c *console) open(answer page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
		defer cancel()
		protect(w.Header())
		r = r.WithContext(ctx)
		err := route.RecoverPanic(func(w http.ResponseWriter, r *http.Request) error { return answer(w, r, currentUser{}) }, w, r)
		if recorder, ok := w.(interface{ Unconfirmed() error }); ok && err == nil {
			err = recorder.Unconfirmed()
		}
		if err != nil {
			if err := c.renderError(w, r, currentUser{}, err); err != nil {
				panic(err) // the error page itself is broken
			}
		}
	})
}

// protect sets the security headers of every page: it may not be cached, framed or load content from other origins.
func protect(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("Cache-Control", "no-store")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
}
