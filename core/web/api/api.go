// Package api serves clients: the routes below /v2, the OpenAPI document and the documentation. It reads requests and writes responses;
// the domain packages decide what they mean.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/identities"
	"intents.internal/core/intents"
	"intents.internal/core/quotes"
	"intents.internal/core/registry"
	"intents.internal/core/web/docs"
	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
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
	Feed *feed.Follower
	// Router records the requests that come in batches.
	Router  *route.Router
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Secrets are the gateways' secrets, which client tokens are made with.
	Secrets route.Secrets
	// PublicURL is where browsers reach the service, without a path. Over https, cookies are bound to it.
	PublicURL string
	// Ready returns nil while core can work and is not draining.
	Ready func(context.Context) error
	// Console is set if core serves pages.
	Console bool
	// WebhookRules are the operator's; nil answers their routes with 503.
	WebhookRules *webhooks.Rules
}

// Server answers clients' requests.
type Server struct {
	Config
	catalog catalogs
	docs    docsPages
	keys    *keyFeed
	filter  keyFilter
	cookie  identity.Cookie
	// flowCookie is the cookie of the OpenID Connect sign-ins in progress.
	flowCookie identity.FlowCookie
	// create is the route of new intents, which also come in batches of requests.
	create route.Route
}

// New returns a server, whose metrics it registers.
func New(config Config) *Server {
	s := &Server{
		Config: config, docs: newDocsPages(config.PublicURL), keys: newKeyFeed(config.Identities, config.Metrics),
		cookie: identity.NewCookie(config.PublicURL), flowCookie: identity.NewFlowCookie(config.PublicURL),
	}
	s.create = route.Route{Pattern: patternCreate, Endpoint: s.createTransfer, Fallback: transferFallback, Idempotent: true}
	return s
}

// The errors of routes that fail without a public error.
var (
	tokenFallback    = route.Fallback{Code: "TokenRegistryServiceError", Message: "The token registry could not be read; try again later."}
	transferFallback = route.Fallback{Code: "TransferServiceError", Message: "The transfer service failed; try again later."}
	webhookFallback  = route.Fallback{Code: "WebhookServiceError", Message: "The webhook service failed; try again later."}
)

// Routes are the routes of clients, and of the documents that describe them.
func (s *Server) Routes() []route.Route {
	return append(s.webhookRoutes(), []route.Route{
		{Pattern: patternIndex, Endpoint: s.getIndex},
		{Pattern: "GET /openapi.json", Endpoint: getOpenAPI, Compress: true, Routine: true},
		{Pattern: "GET /docs", Endpoint: s.getDocs, Compress: true, Routine: true},
		{Pattern: patternDocsPages, Endpoint: s.getDocs, Compress: true, Routine: true},
		{Pattern: "GET " + docs.LLMsPath, Endpoint: llmsAsset.get, Compress: true, Routine: true},
		{Pattern: "GET /v2/tokens", Endpoint: s.listTokens, Fallback: tokenFallback, Compress: true, Routine: true},
		{Pattern: "GET /v2/chains", Endpoint: s.listChains, Fallback: tokenFallback, Compress: true, Routine: true},
		{Pattern: "GET /v2/usage", Endpoint: s.getUsage, Compress: true},
		{Pattern: "GET /v2/transfers", Endpoint: s.listTransfers, Fallback: transferFallback, Compress: true, Stream: true},
		s.create,
		{Pattern: patternCreateBatch, Endpoint: s.createBatch, Fallback: transferFallback, Idempotent: true},
		{Pattern: "GET /v2/transfers/{id}", Endpoint: s.getTransfer, Fallback: transferFallback, Compress: true},
		{Pattern: "PATCH /v2/transfers/{id}", Endpoint: s.changeTransfer(s.updateTransfer), Fallback: transferFallback},
		{Pattern: "POST /v2/transfers/{id}/cancel", Endpoint: s.changeTransfer(s.cancelTransfer), Fallback: transferFallback},

		{Pattern: "GET /v2/batches/{id}", Endpoint: s.getBatch, Fallback: transferFallback, Compress: true},
		{Pattern: "GET /v2/batches/{id}/calls", Endpoint: s.getBatchCalls, Fallback: transferFallback, Compress: true},
		{Pattern: "POST /v2/batches/{id}/transaction", Endpoint: s.reportBatch, Fallback: transferFallback},

		{Pattern: "POST /v2/quotes", Endpoint: s.createQuotes, Fallback: transferFallback},
		{Pattern: "GET /v2/quotes/{id}", Endpoint: s.getQuote, Fallback: transferFallback},

		{Pattern: "GET /v2/origins", Endpoint: s.getOrigins},
		{Pattern: "PATCH /v2/origins", Endpoint: s.updateOrigins},

		{Pattern: "GET /v2/events", Endpoint: s.listEvents, Fallback: transferFallback, Compress: true},
		{Pattern: "GET /v2/events/{id}", Endpoint: s.getEvent, Fallback: transferFallback, Compress: true},
		{Pattern: "GET /v2/transfers/{id}/events", Endpoint: s.listTransferEvents, Fallback: transferFallback, Compress: true},

		{Pattern: "POST /v2/transfers/{id}/client-token", Endpoint: s.createClientToken, Fallback: transferFallback},
		{Pattern: "GET /v2/transfers/{id}/preflight", Endpoint: s.preflightTransfer, Fallback: transferFallback},
		{Pattern: "GET /v2/transfers/{id}/refund", Endpoint: s.getRefund, Fallback: transferFallback},
		{Pattern: "GET /v2/transfers/{id}/relay", Endpoint: s.getRelay, Fallback: transferFallback},
		{Pattern: "POST /v2/transfers/{id}/signature", Endpoint: s.changeTransfer(s.signTransfer), Fallback: transferFallback},
		{Pattern: "POST /v2/transfers/{id}/simulate", Endpoint: s.changeTransfer(s.simulateTransfer), Fallback: transferFallback},
		{Pattern: "POST /v2/transfers/{id}/transaction", Endpoint: s.changeTransfer(s.reportTransaction), Fallback: transferFallback},
	}...)
}

// sessionRoute is a path below /auth, which has one method.
type sessionRoute struct {
	method string
	answer route.Endpoint
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

// writingGETs are the paths whose GET writes: links in mails and redirects are followed with it, and the options of a registration have the
// user handle that the authenticator keeps for ever.
var writingGETs = []string{"/auth/verify-email", identity.OIDCCallbackPath, "/auth/passkey/generate-register-options"}

// SessionRoutes are the routes below /auth.
func (s *Server) SessionRoutes() []route.Route {
	var routes []route.Route
	for path, r := range s.sessionRoutes() {
		routes = append(routes, route.Route{
			Pattern: r.method + " " + path, Endpoint: s.require(r.need, r.answer), Writes: slices.Contains(writingGETs, path),
		})
	}
	return routes
}

// GatewayRoutes are the routes of gateways.
func (s *Server) GatewayRoutes() []route.Route {
	return []route.Route{
		{Pattern: "POST " + wire.PathVerifyKey, Endpoint: s.verifyKey, ReadOnly: true},
		{Pattern: "GET " + wire.PathKeyChanges, Endpoint: s.listKeyChanges, Routine: true},
		{Pattern: "GET " + wire.PathKeyFilter, Endpoint: s.getKeyFilter, Stream: true, Routine: true},
		{Pattern: "GET " + wire.PathEventAccounts, Endpoint: s.listEventAccounts, Stream: true, Routine: true},
		{Pattern: "POST " + wire.PathUsage, Endpoint: s.recordUsage, Routine: true},
	}
}

// Handle registers the routes of gateways that record themselves.
func (s *Server) Handle(mux *http.ServeMux) {
	mux.HandleFunc("POST "+wire.PathBatch, s.serveGroup)
	mux.HandleFunc("GET "+wire.PathReady, s.getReady)
}
