// Package gateways serves the gateways themselves: the keys that they verify, the accounts that have new events, the usage that they report,
// batches of clients' requests, and whether this core can work.
package gateways

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/intents"
	"intents.internal/core/web/api"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// Config is the configuration of the routes of gateways.
type Config struct {
	Identities *identity.Store
	Transfers  *intents.Store
	// Feed assigns positions to events and reports accounts with new events.
	Feed *feed.Follower
	// API answers the requests that come in batches, and Router records them.
	API     *api.Server
	Router  *route.Router
	Metrics prometheus.Registerer
	// Now is the database's clock.
	Now func() time.Time
	// Ready returns nil while core can work and is not draining.
	Ready func(context.Context) error
}

// Server answers gateways' requests.
type Server struct {
	Config
	keys   *keyFeed
	filter keyFilter
	// create is the route of the requests in batches.
	create route.Route
}

// New returns a server, whose metrics it registers.
func New(config Config) *Server {
	return &Server{Config: config, keys: newKeyFeed(config.Identities, config.Now, config.Metrics), create: config.API.CreateTransfer()}
}

// Handle registers the routes of gateways.
func (s *Server) Handle(mux *http.ServeMux) {
	s.Router.Handle(mux, []route.Route{
		{Pattern: "POST " + wire.PathVerifyKey, Endpoint: s.verifyKey, ReadOnly: true},
		{Pattern: "GET " + wire.PathKeyChanges, Endpoint: s.listKeyChanges, Routine: true},
		{Pattern: "GET " + wire.PathKeyFilter, Endpoint: s.getKeyFilter, Stream: true, Routine: true},
		{Pattern: "GET " + wire.PathEventAccounts, Endpoint: s.listEventAccounts, Stream: true, Routine: true},
		{Pattern: "POST " + wire.PathUsage, Endpoint: s.recordUsage, Routine: true},
	}...)
	// The requests of a batch are recorded one by one, and readiness is not.
	mux.HandleFunc("POST "+wire.PathBatch, s.serveGroup)
	mux.HandleFunc("GET "+wire.PathReady, s.getReady)
}
