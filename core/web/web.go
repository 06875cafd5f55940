// Package web is core's HTTP interface: it composes what clients (api), people (auth, console) and gateways (gateways) call.
package web

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/intents"
	"intents.internal/core/quotes"
	"intents.internal/core/registry"
	"intents.internal/core/web/api"
	"intents.internal/core/web/auth"
	"intents.internal/core/web/console"
	"intents.internal/core/web/gateways"
	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// Config is the configuration of all routes.
type Config struct {
	Identities *identity.Store
	Transfers  *intents.Store
	Events     *feed.Store
	// Webhooks answers 503 where the operator has configured none.
	Webhooks *webhooks.Service
	Registry *registry.LiveRegistry
	Intents  *intents.Service
	Quotes   *quotes.Service
	Identity *identity.Service
	// Feed assigns positions to events and reports accounts with new events.
	Feed    *feed.Follower
	Log     *slog.Logger
	Metrics *prometheus.Registry
	// Secrets are the gateways' secrets; every request must carry one.
	Secrets route.Secrets
	// Now is the database's clock.
	Now func() time.Time
	// PublicURL is where browsers reach the service, without a path. Over https, cookies are bound to it.
	PublicURL string
	// Ready returns nil while core can work and is not draining.
	Ready func(context.Context) error
	// Tracer makes the spans of requests; nil for none.
	Tracer *tracing.Tracer
	// AccessLog gets a line for every request except those that core failed, whose line goes to Log; nil for none. While
	// the database fails, Log gets one line per cause and second, and AccessLog the others.
	AccessLog *slog.Logger
	// Console answers /console and everything below it, with its own protection against other sites, see NewConsole; nil leaves those paths out.
	Console http.Handler
}

// NewConsole returns the pages of the console.
func (c Config) NewConsole() (http.Handler, error) {
	return console.New(console.Config{
		Identities: c.Identities, Transfers: c.Transfers, Events: c.Events, Webhooks: c.Webhooks, Registry: c.Registry, Intents: c.Intents,
		Quotes: c.Quotes, Identity: c.Identity, Cookie: identity.NewCookie(c.PublicURL), PublicURL: c.PublicURL, Now: c.Now, Log: c.Log,
	})
}

var (
	errMethod      = route.NewError(http.StatusMethodNotAllowed, wire.MethodNotAllowed, "The path takes another method; see Allow.")
	errCrossOrigin = route.NewError(http.StatusForbidden, "CROSS_ORIGIN_REQUEST", "The request came from another site; open this one and try again.")
)

// New returns the handler of all routes, whose metrics it registers.
func New(config Config) (http.Handler, error) {
	router, err := route.New(route.Config{
		Secrets: config.Secrets, Confirm: config.Transfers.Confirm, Log: config.Log, AccessLog: config.AccessLog, Metrics: config.Metrics,
		Tracer: config.Tracer,
	})
	if err != nil {
		return nil, err
	}
	crossOrigin := http.NewCrossOriginProtection()
	if err := crossOrigin.AddTrustedOrigin(config.PublicURL); err != nil {
		return nil, err
	}
	crossOrigin.SetDenyHandler(failing(router, errCrossOrigin))

	clients := api.New(api.Config{
		Identities: config.Identities, Transfers: config.Transfers, Events: config.Events, Webhooks: config.Webhooks, Registry: config.Registry,
		Intents: config.Intents, Quotes: config.Quotes, Feed: config.Feed, Now: config.Now, Secrets: config.Secrets, PublicURL: config.PublicURL,
		Console: config.Console != nil,
	})
	people := auth.New(auth.Config{
		Identity: config.Identity, Identities: config.Identities, Now: config.Now, PublicURL: config.PublicURL, Log: config.Log,
	})
	mux, sessions := http.NewServeMux(), http.NewServeMux()
	router.Handle(mux, clients.Routes()...)
	gateways.New(gateways.Config{
		Identities: config.Identities, Transfers: config.Transfers, Feed: config.Feed, API: clients, Router: router, Metrics: config.Metrics,
		Now: config.Now, Ready: config.Ready,
	}).Handle(mux)
	router.Handle(sessions, people.Routes()...)
	sessions.Handle("/auth/", failing(router, route.ErrNotFound))
	handleOtherMethods(router, mux, sessions)
	onlyTLS := onlyTLS(identity.NewCookie(config.PublicURL).Secure())
	mux.Handle("/auth/", onlyTLS(crossOrigin.Handler(sessions)))
	if config.Console != nil {
		console := onlyTLS(router.Handler(route.Route{Endpoint: consoleEndpoint(config.Console), Stream: true}))
		mux.Handle("/console", console)
		mux.Handle("/console/", console)
	}
	mux.Handle("/", failing(router, route.ErrNotFound))
	return router.OnlyGateways(mux), nil
}

// failing answers every request with an error.
func failing(router *route.Router, err error) http.Handler {
	return router.Handler(route.Route{Endpoint: func(http.ResponseWriter, *http.Request) error { return err }})
}

// consoleEndpoint forwards a request to the console, whose pages have their own deadline and cross-origin protection. The route in the
// log and the metrics is the page's.
func consoleEndpoint(console http.Handler) route.Endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		console.ServeHTTP(w, r)
		return nil
	}
}

// onlyTLS tells browsers that reach the service over TLS to do only that for a year (HSTS, RFC 6797). Other hosts of the domain are
// not the service's to decide on.
func onlyTLS(secure bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if !secure {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
			next.ServeHTTP(w, r)
		})
	}
}

// handleOtherMethods answers the methods that the public paths lack.
func handleOtherMethods(router *route.Router, mux, sessions *http.ServeMux) {
	for _, path := range wire.Paths {
		handler := methodNotAllowed(router, path)
		switch {
		case path.Pattern == "/": // to the mux it is every path
			mux.Handle("/{$}", handler)
		case strings.HasPrefix(path.Pattern, "/auth/"):
			sessions.Handle(path.Pattern, handler)
		case path.Pattern == api.PathCreateBatch: // the mux does not choose between it with every method and GET /v2/transfers/{id}
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
				mux.Handle(method+" "+path.Pattern, handler)
			}
		default:
			mux.Handle(path.Pattern, handler)
		}
	}
}

// methodNotAllowed answers the methods that a path lacks. Go's mux answers HEAD with the handler of GET.
func methodNotAllowed(router *route.Router, path wire.Path) http.Handler {
	allow := strings.Replace(strings.Join(path.Methods, ", "), http.MethodGet, http.MethodGet+", "+http.MethodHead, 1)
	return router.Handler(route.Route{Endpoint: func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Allow", allow)
		return errMethod
	}})
}
