// Package api is core's HTTP interface: the routes that gateways forward, the internal routes for the gateways themselves, and the
// one mapping of errors to statuses.
//
// It reads requests and writes responses; the domain packages decide what they mean.
package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/identities"
	"intents.internal/core/intents"
	"intents.internal/core/quotes"
	"intents.internal/core/registry"
	"intents.internal/core/web/docs"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// Config is the API's configuration.
type Config struct {
	Identities *identities.Store
	Transfers  *intents.Store
	Events     *feed.Store
	Webhooks   *webhooks.Store
	Registry   *registry.LiveRegistry
	Intents    *intents.Service
	Quotes     *quotes.Service
	Identity   *identity.Service
	// Feed assigns positions to events and reports accounts with new events.
	Feed    *feed.Follower
	Log     *slog.Logger
	Metrics *prometheus.Registry
	// Secrets are the gateways' secrets; every request must carry one.
	Secrets Secrets
	// PublicURL is where browsers reach the service, without a path. Over https, cookies are bound to it.
	PublicURL string
	// Ready returns nil while core can work and is not draining.
	Ready func(context.Context) error
	// Tracer makes the spans of requests; nil for none.
	Tracer *tracing.Tracer
	// AccessLog gets a line for every request except those that core failed, whose line goes to Log; nil for none. While
	// the database fails, Log gets one line per cause and second, and AccessLog the others.
	AccessLog *slog.Logger
	// Console answers /console and everything below it, with its own protection against other sites; nil leaves those paths
	// out.
	Console http.Handler
	// WebhookRules are the operator's; nil answers their routes with 503.
	WebhookRules *webhooks.Rules
}

// Server serves core's requests.
type Server struct {
	Config
	catalog catalogs
	docs    docsPages
	keys    *keyFeed
	filter  keyFilter
	metrics *metrics
	cookie  identity.Cookie
	// flowCookie is the cookie of the OpenID Connect sign-ins in progress.
	flowCookie identity.FlowCookie
	// unavailable samples the log of requests that the database or another server failed.
	unavailable telemetry.CauseSampler
}

// unavailableLogEvery is the time between two log lines about requests that failed with 503 for one cause.
const unavailableLogEvery = time.Second

// requestTimeout bounds the work on one request, except for streamed lists. It is below the gateway's deadline, so that core
// responds when the database is slow, and logs the cause.
const requestTimeout = 5 * time.Second

// New returns the handler of all routes.
func New(config Config) (http.Handler, error) {
	s := &Server{
		Config: config, metrics: newMetrics(config.Metrics), docs: newDocsPages(config.PublicURL),
		cookie: identity.NewCookie(config.PublicURL), flowCookie: identity.NewFlowCookie(config.PublicURL),
		unavailable: telemetry.CauseSampler{Every: unavailableLogEvery},
	}
	s.keys = newKeyFeed(s.Identities, s.metrics.readings)
	crossOrigin := http.NewCrossOriginProtection()
	if err := crossOrigin.AddTrustedOrigin(config.PublicURL); err != nil {
		return nil, err
	}
	crossOrigin.SetDenyHandler(s.route(func(http.ResponseWriter, *http.Request) error { return errCrossOrigin }, fallbackError{}))

	compress, err := gzhttp.NewWrapper()
	if err != nil {
		return nil, fmt.Errorf("prepare compression: %w", err)
	}

	mux := http.NewServeMux()
	for pattern, handler := range s.publicRoutes(compress) {
		mux.Handle(pattern, handler)
	}
	for pattern, handler := range s.webhookRoutes() {
		mux.Handle(pattern, handler)
	}
	sessions := http.NewServeMux()
	s.handleSessions(sessions)
	for _, path := range wire.Paths {
		switch {
		case path.Pattern == "/": // to the mux it is every path
			mux.Handle("/{$}", s.methodNotAllowed(path))
		case strings.HasPrefix(path.Pattern, "/auth/"):
			sessions.Handle(path.Pattern, s.methodNotAllowed(path))
		case path.Pattern == pathCreateBatch: // the mux does not choose between it with every method and GET /v2/transfers/{id}
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
				mux.Handle(method+" "+path.Pattern, s.methodNotAllowed(path))
			}
		default:
			mux.Handle(path.Pattern, s.methodNotAllowed(path))
		}
	}
	s.internalRoutes(mux)
	mux.Handle("/auth/", s.onlyTLS(crossOrigin.Handler(sessions)))
	if s.Console != nil {
		console := s.onlyTLS(s.streamRoute(s.console, fallbackError{}))
		mux.Handle("/console", console)
		mux.Handle("/console/", console)
	}
	mux.Handle("/", s.route(func(http.ResponseWriter, *http.Request) error { return errNoRoute }, fallbackError{}))
	return s.onlyGateways(mux), nil
}

// onlyTLS tells browsers that reach the service over TLS to do only that for a year (HSTS, RFC 6797). Other hosts of the domain are
// not the service's to decide on.
func (s *Server) onlyTLS(next http.Handler) http.Handler {
	if !s.cookie.Secure() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}

// publicRoutes are compressed for clients that accept it. Session routes are not, because their responses mix secrets with
// content that a request can choose (BREACH).
func (s *Server) publicRoutes(compress func(http.Handler) http.HandlerFunc) map[string]http.Handler {
	return map[string]http.Handler{
		patternIndex:                     s.route(s.getIndex, fallbackError{}),
		"GET /openapi.json":              compress(s.route(getOpenAPI, fallbackError{})),
		"GET /docs":                      compress(s.route(s.getDocs, fallbackError{})),
		patternDocsPages:                 compress(s.route(s.getDocs, fallbackError{})),
		"GET " + docs.LLMsPath:           compress(s.route(llmsAsset.get, fallbackError{})),
		"GET /v2/tokens":                 compress(s.route(s.listTokens, tokenFallback)),
		"GET /v2/chains":                 compress(s.route(s.listChains, tokenFallback)),
		"GET /v2/usage":                  compress(s.route(s.getUsage, fallbackError{})),
		"GET /v2/transfers":              compress(s.streamRoute(s.listTransfers, transferFallback)),
		patternCreate:                    s.route(s.createTransfer, transferFallback),
		patternCreateBatch:               s.route(s.createBatch, transferFallback),
		"GET /v2/transfers/{id}":         compress(s.route(s.getTransfer, transferFallback)),
		"PATCH /v2/transfers/{id}":       s.route(s.changeTransfer(s.updateTransfer), transferFallback),
		"POST /v2/transfers/{id}/cancel": s.route(s.changeTransfer(s.cancelTransfer), transferFallback),

		"GET /v2/batches/{id}":              compress(s.route(s.getBatch, transferFallback)),
		"GET /v2/batches/{id}/calls":        compress(s.route(s.getBatchCalls, transferFallback)),
		"POST /v2/batches/{id}/transaction": s.route(s.reportBatch, transferFallback),

		"POST /v2/quotes":     s.route(s.createQuotes, transferFallback),
		"GET /v2/quotes/{id}": s.route(s.getQuote, transferFallback),

		"GET /v2/origins":   s.route(s.getOrigins, fallbackError{}),
		"PATCH /v2/origins": s.route(s.updateOrigins, fallbackError{}),

		"GET /v2/events":                compress(s.route(s.listEvents, transferFallback)),
		"GET /v2/events/{id}":           compress(s.route(s.getEvent, transferFallback)),
		"GET /v2/transfers/{id}/events": compress(s.route(s.listTransferEvents, transferFallback)),

		"POST /v2/transfers/{id}/client-token": s.route(s.createClientToken, transferFallback),
		"GET /v2/transfers/{id}/preflight":     s.route(s.preflightTransfer, transferFallback),
		"GET /v2/transfers/{id}/refund":        s.route(s.getRefund, transferFallback),
		"GET /v2/transfers/{id}/relay":         s.route(s.getRelay, transferFallback),
		"POST /v2/transfers/{id}/signature":    s.route(s.changeTransfer(s.signTransfer), transferFallback),
		"POST /v2/transfers/{id}/simulate":     s.route(s.changeTransfer(s.simulateTransfer), transferFallback),
		"POST /v2/transfers/{id}/transaction":  s.route(s.changeTransfer(s.reportTransaction), transferFallback),
	}
}

// sessionRoute is a path below /auth, which has one method.
type sessionRoute struct {
	method string
	answer endpoint
	need   identity.Need
}

func (s *Server) sessionRoutes() map[string]sessionRoute {
	return map[string]sessionRoute{
		"/auth/sign-up/email":                         {http.MethodPost, s.signUp, identity.Anyone},
		"/auth/sign-in/email":                         {http.MethodPost, s.signIn, identity.Anyone},
		"/auth/sign-out":                              {http.MethodPost, s.signOut, identity.Anyone},
		"/auth/get-session":                           {http.MethodGet, s.getSession, identity.Anyone},
		"/auth/list-sessions":                         {http.MethodGet, s.listSessions, identity.Person},
		"/auth/revoke-session":                        {http.MethodPost, s.revokeSession, identity.Person},
		"/auth/revoke-other-sessions":                 {http.MethodPost, s.revokeOtherSessions, identity.Person},
		"/auth/revoke-sessions":                       {http.MethodPost, s.revokeSessions, identity.Person},
		"/auth/change-password":                       {http.MethodPost, s.changePassword, identity.Person},
		"/auth/request-password-reset":                {http.MethodPost, s.requestPasswordReset, identity.Anyone},
		"/auth/reset-password":                        {http.MethodPost, s.resetPassword, identity.Anyone},
		"/auth/delete-user":                           {http.MethodPost, s.deleteUser, identity.Person},
		"/auth/siwe/nonce":                            {http.MethodPost, s.createNonce, identity.Anyone},
		"/auth/siwe/verify":                           {http.MethodPost, s.verifySIWE, identity.Anyone},
		"/auth/sign-in/oauth2":                        {http.MethodPost, s.startOIDC, identity.Anyone},
		identity.OIDCCallbackPath:                     {http.MethodGet, s.finishOIDC, identity.Anyone},
		"/auth/list-accounts":                         {http.MethodGet, s.listAccounts, identity.Person},
		"/auth/oauth2/link":                           {http.MethodPost, s.linkOIDC, identity.Person},
		"/auth/siwe/link":                             {http.MethodPost, s.linkSIWE, identity.Person},
		"/auth/unlink-account":                        {http.MethodPost, s.unlinkAccount, identity.Person},
		"/auth/passkey/generate-register-options":     {http.MethodGet, s.generateRegisterOptions, identity.Person},
		"/auth/passkey/verify-registration":           {http.MethodPost, s.verifyRegistration, identity.Person},
		"/auth/passkey/generate-authenticate-options": {http.MethodGet, s.generateAuthenticateOptions, identity.Anyone},
		"/auth/passkey/verify-authentication":         {http.MethodPost, s.verifyAuthentication, identity.Anyone},
		"/auth/passkey/list-user-passkeys":            {http.MethodGet, s.listPasskeys, identity.Person},
		"/auth/passkey/update-passkey":                {http.MethodPost, s.updatePasskey, identity.Person},
		"/auth/passkey/delete-passkey":                {http.MethodPost, s.deletePasskey, identity.Person},
		"/auth/send-verification-email":               {http.MethodPost, s.sendVerificationEmail, identity.Anyone},
		"/auth/verify-email":                          {http.MethodGet, s.verifyEmail, identity.Anyone},
		"/auth/change-email":                          {http.MethodPost, s.changeEmail, identity.Person},
		"/auth/api-key/create":                        {http.MethodPost, s.createKey, identity.Develop},
		"/auth/api-key/list":                          {http.MethodGet, s.listKeys, identity.Read},
		"/auth/api-key/get":                           {http.MethodGet, s.getKey, identity.Read},
		"/auth/api-key/update":                        {http.MethodPost, s.updateKey, identity.Develop},
		"/auth/api-key/rotate":                        {http.MethodPost, s.rotateKey, identity.Develop},
		"/auth/api-key/delete":                        {http.MethodPost, s.deleteKey, identity.Develop},

		// The required role depends on the account that the request names, so these routes check it themselves, with s.on.
		"/auth/organization/create":                {http.MethodPost, s.createOrganization, identity.Person},
		"/auth/organization/list":                  {http.MethodGet, s.listOrganizations, identity.Person},
		"/auth/organization/set-active":            {http.MethodPost, s.setActiveOrganization, identity.Person},
		"/auth/organization/update":                {http.MethodPost, s.updateOrganization, identity.Person},
		"/auth/organization/delete":                {http.MethodPost, s.deleteOrganization, identity.Person},
		"/auth/organization/get-full-organization": {http.MethodGet, s.getOrganization, identity.Person},
		"/auth/organization/list-members":          {http.MethodGet, s.listMembers, identity.Person},
		"/auth/organization/get-active-member":     {http.MethodGet, s.getActiveMember, identity.Person},
		"/auth/organization/update-member-role":    {http.MethodPost, s.updateMemberRole, identity.Person},
		"/auth/organization/remove-member":         {http.MethodPost, s.removeMember, identity.Person},
		"/auth/organization/leave":                 {http.MethodPost, s.leaveOrganization, identity.Person},
		"/auth/organization/invite-member":         {http.MethodPost, s.inviteMember, identity.Person},
		"/auth/organization/list-invitations":      {http.MethodGet, s.listInvitations, identity.Person},
		"/auth/organization/cancel-invitation":     {http.MethodPost, s.cancelInvitation, identity.Person},
		"/auth/organization/get-invitation":        {http.MethodGet, s.getInvitation, identity.Person},
		"/auth/organization/accept-invitation":     {http.MethodPost, s.acceptInvitation, identity.Person},
		"/auth/organization/reject-invitation":     {http.MethodPost, s.rejectInvitation, identity.Person},
	}
}

func (s *Server) handleSessions(mux *http.ServeMux) {
	for path, route := range s.sessionRoutes() {
		mux.Handle(route.method+" "+path, s.route(s.require(route.need, route.answer), fallbackError{}))
	}
	mux.Handle("/auth/", s.route(func(http.ResponseWriter, *http.Request) error { return errNoRoute }, fallbackError{}))
}

// methodNotAllowed answers the methods that a path lacks. Go's mux answers HEAD with the handler of GET.
func (s *Server) methodNotAllowed(path wire.Path) http.Handler {
	allow := strings.Replace(strings.Join(path.Methods, ", "), http.MethodGet, http.MethodGet+", "+http.MethodHead, 1)
	return s.route(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Allow", allow)
		return errMethod
	}, fallbackError{})
}

// console forwards a request to the console, whose pages have their own deadline and cross-origin protection. The route in the
// log and the metrics is the page's.
func (s *Server) console(w http.ResponseWriter, r *http.Request) error {
	s.Console.ServeHTTP(w, r)
	return nil
}

func (s *Server) internalRoutes(mux *http.ServeMux) {
	mux.Handle("POST "+wire.PathVerifyKey, s.route(s.verifyKey, fallbackError{}))
	mux.Handle("GET "+wire.PathKeyChanges, s.route(s.listKeyChanges, fallbackError{}))
	mux.Handle("GET "+wire.PathKeyFilter, s.streamRoute(s.getKeyFilter, fallbackError{}))
	mux.Handle("GET "+wire.PathEventAccounts, s.streamRoute(s.listEventAccounts, fallbackError{}))
	mux.Handle("POST "+wire.PathUsage, s.route(s.recordUsage, fallbackError{}))
	mux.HandleFunc("POST "+wire.PathBatch, s.serveGroup)
	mux.HandleFunc("GET "+wire.PathReady, s.getReady)
}
