// Package api serves clients: the routes below /v2, the OpenAPI document and the documentation. It reads requests and writes responses;
// the domain packages decide what they mean.
package api

import (
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/intents"
	"intents.internal/core/quotes"
	"intents.internal/core/registry"
	"intents.internal/core/web/docs"
	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
)

// Config is the API's configuration.
type Config struct {
	Identities *identity.Store
	Transfers  *intents.Store
	Events     *feed.Store
	// Webhooks answers 503 where the operator has configured none.
	Webhooks *webhooks.Service
	Registry *registry.LiveRegistry
	Intents  *intents.Service
	Quotes   *quotes.Service
	// Feed reports accounts with new events.
	Feed *feed.Follower
	// Secrets are the gateways' secrets, which client tokens are made with.
	Secrets route.Secrets
	// Now is the database's clock.
	Now func() time.Time
	// PublicURL is where browsers reach the service, without a path.
	PublicURL string
	// Console is set if core serves pages.
	Console bool
}

// Server answers clients' requests.
type Server struct {
	Config
	catalog catalogs
	docs    docsPages
}

// New returns a server.
func New(config Config) *Server {
	return &Server{Config: config, docs: newDocsPages(config.PublicURL)}
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
		s.CreateTransfer(),
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
