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
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/access"
	"intents.internal/core/api/docs"
	"intents.internal/core/feed"
	"intents.internal/core/postgres"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/core/webhook"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// Config is what the API needs to know.
type Config struct {
	Store    *postgres.Store
	Registry *postgres.LiveRegistry
	Access   *access.Service
	// Feed gives events their positions and knows who has news.
	Feed    *feed.Follower
	Log     *slog.Logger
	Metrics *prometheus.Registry
	// Secrets are the gateways' secrets; every request must carry one.
	Secrets Secrets
	// PublicURL is where browsers reach the service, without a path. Over https, cookies are bound to it.
	PublicURL string
	// Created is called with each intent that a POST made or found, and must not wait; nil for nothing.
	Created func(*transfer.Intent)
	// Ready is nil while core can work and will go on to.
	Ready func(context.Context) error
	// Tracer makes the spans of requests; nil for none.
	Tracer *tracing.Tracer
	// AccessLog writes a line for every request; without it there are lines of requests that failed by core's fault alone.
	AccessLog bool
	// Console answers /console and everything below it, with its own protection against other sites; nil leaves those paths
	// out.
	Console http.Handler
	// Webhooks are the operator's rules of webhooks; nil answers their routes with 503.
	Webhooks *webhook.Rules
	// Chains has the nodes of the chains; nil where no chain has any.
	Chains *rpc.Client
	// Reported is called after a client has reported a new transaction of an intent, nil for nobody to call. It must return at once.
	Reported func(source caip.ChainID, accountID, transferID uuid.UUID, hash common.Hash)
}

// Server answers core's requests.
type Server struct {
	Config
	catalog catalogs
	keys    *keyFeed
	filter  keyFilter
	metrics *metrics
	cookie  access.Cookie
	// flowCookie is the one of an OpenID Connect sign-in that has begun.
	flowCookie access.FlowCookie
	assets     assets
}

// requestTimeout bounds the work on one request, streamed lists excepted. It is below the gateway's deadline, so that
// core answers for a slow database and logs the cause.
const requestTimeout = 5 * time.Second

// New returns the handler of all routes.
func New(config Config) (http.Handler, error) {
	s := &Server{
		Config: config, metrics: newMetrics(config.Metrics),
		cookie: access.NewCookie(config.PublicURL), flowCookie: access.NewFlowCookie(config.PublicURL),
	}
	s.keys = newKeyFeed(s.Store, s.metrics.readings)
	crossOrigin := http.NewCrossOriginProtection()
	if err := crossOrigin.AddTrustedOrigin(config.PublicURL); err != nil {
		return nil, err
	}
	crossOrigin.SetDenyHandler(s.route(func(http.ResponseWriter, *http.Request) error { return errCrossOrigin }, fallbackError{}))

	var err error
	if s.assets, err = newAssets(); err != nil {
		return nil, err
	}
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
	s.internalRoutes(mux)
	sessions := http.NewServeMux()
	s.handleSessions(sessions)
	mux.Handle("/auth/", crossOrigin.Handler(sessions))
	if s.Console != nil {
		console := s.streamRoute(s.console, fallbackError{})
		mux.Handle("/console", console)
		mux.Handle("/console/", console)
	}
	mux.Handle("/", s.route(func(http.ResponseWriter, *http.Request) error { return errNoRoute }, fallbackError{}))
	return s.onlyGateways(mux), nil
}

// publicRoutes are compressed for clients that accept it. Session routes are not, since they mix secrets with content that a request
// can choose (BREACH).
func (s *Server) publicRoutes(compress func(http.Handler) http.HandlerFunc) map[string]http.Handler {
	tokens := fallbackError{code: "TokenRegistryServiceError", message: "The token registry could not be read; try again later."}
	transfers := fallbackError{code: "TransferServiceError", message: "The transfer service failed; try again later."}
	return map[string]http.Handler{
		"GET /openapi.json":              compress(s.route(s.getOpenAPI, fallbackError{})),
		"GET /docs":                      compress(s.route(s.getDocs, fallbackError{})),
		"GET " + docs.StylePath:          compress(s.route(s.getDocsStyle, fallbackError{})),
		"GET /v2/tokens":                 compress(s.route(s.listTokens, tokens)),
		"GET /v2/chains":                 compress(s.route(s.listChains, tokens)),
		"GET /v2/transfers":              compress(s.streamRoute(s.listTransfers, transfers)),
		"POST /v2/transfers":             s.route(s.createTransfer, transfers),
		"GET /v2/transfers/{id}":         compress(s.route(s.getTransfer, transfers)),
		"POST /v2/transfers/{id}/cancel": s.route(s.changeTransfer(s.cancelTransfer), transfers),

		"GET /v2/events": compress(s.route(s.listEvents, transfers)),

		"GET /v2/transfers/{id}/preflight":    s.route(s.preflightTransfer, transfers),
		"GET /v2/transfers/{id}/refund":       s.route(s.getRefund, transfers),
		"POST /v2/transfers/{id}/transaction": s.route(s.changeTransfer(s.reportTransaction), transfers),
	}
}

// sessionRoute is a path below /auth, which has one method.
type sessionRoute struct {
	method string
	answer endpoint
}

func (s *Server) sessionRoutes() map[string]sessionRoute {
	return map[string]sessionRoute{
		"/auth/sign-up/email":         {http.MethodPost, s.signUp},
		"/auth/sign-in/email":         {http.MethodPost, s.signIn},
		"/auth/sign-out":              {http.MethodPost, s.signOut},
		"/auth/get-session":           {http.MethodGet, s.getSession},
		"/auth/list-sessions":         {http.MethodGet, s.listSessions},
		"/auth/revoke-session":        {http.MethodPost, s.revokeSession},
		"/auth/revoke-other-sessions": {http.MethodPost, s.revokeOtherSessions},
		"/auth/revoke-sessions":       {http.MethodPost, s.revokeSessions},
		"/auth/delete-user":           {http.MethodPost, s.deleteUser},
		"/auth/siwe/nonce":            {http.MethodPost, s.createNonce},
		"/auth/siwe/verify":           {http.MethodPost, s.verifySIWE},
		"/auth/sign-in/oauth2":        {http.MethodPost, s.startOIDC},
		access.OIDCCallbackPath:       {http.MethodGet, s.finishOIDC},
		"/auth/api-key/create":        {http.MethodPost, s.createKey},
		"/auth/api-key/list":          {http.MethodGet, s.listKeys},
		"/auth/api-key/get":           {http.MethodGet, s.getKey},
		"/auth/api-key/update":        {http.MethodPost, s.updateKey},
		"/auth/api-key/rotate":        {http.MethodPost, s.rotateKey},
		"/auth/api-key/delete":        {http.MethodPost, s.deleteKey},
	}
}

func (s *Server) handleSessions(mux *http.ServeMux) {
	for path, route := range s.sessionRoutes() {
		mux.Handle(route.method+" "+path, s.route(route.answer, fallbackError{}))
		mux.Handle(path, s.route(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Allow", route.method)
			return errMethod
		}, fallbackError{}))
	}
	mux.Handle("/auth/", s.route(func(http.ResponseWriter, *http.Request) error { return errNoRoute }, fallbackError{}))
}

// console passes a request on: the pages have their own deadline and cross-origin protection. The route in the log and the metrics
// is the page's.
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
	mux.HandleFunc("GET "+wire.PathReady, s.getReady)
	mux.Handle("GET "+wire.PathChains, s.route(s.listChains, fallbackError{}))
}
