// Package route is what all of core's HTTP endpoints share: it reads requests, maps errors to responses, confirms what a response tells of a
// write, and records each request in the metrics, the log and the trace. What a request means is the endpoints' business.
package route

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tracing"
)

// Config is a router's configuration.
type Config struct {
	// Secrets are the gateways' secrets; every request must carry one.
	Secrets Secrets
	// Confirm returns nil once all that the database has answered is durable, see postgres.DB.Confirm.
	Confirm func(context.Context) error
	Log     *slog.Logger
	// AccessLog gets a line for every request except those that core failed, whose line goes to Log; nil for none. While
	// the database fails, Log gets one line per cause and second, and AccessLog the others.
	AccessLog *slog.Logger
	Metrics   prometheus.Registerer
	// Tracer makes the spans of requests; nil for none.
	Tracer *tracing.Tracer
}

// Router serves the routes of all packages. It is safe for concurrent use.
type Router struct {
	Config
	metrics *metrics
	// unavailable samples the log of requests that the database or another server failed.
	unavailable telemetry.CauseSampler
	compress    func(http.Handler) http.HandlerFunc
}

// unavailableLogEvery is the time between two log lines about requests that failed with 503 for one cause.
const unavailableLogEvery = time.Second

// Timeout bounds the work on one request, except for streamed lists. It is below the gateway's deadline, so that core
// responds when the database is slow, and logs the cause.
const Timeout = 5 * time.Second

// New returns a router, whose metrics it registers.
func New(config Config) (*Router, error) {
	compress, err := gzhttp.NewWrapper()
	if err != nil {
		return nil, fmt.Errorf("prepare compression: %w", err)
	}
	return &Router{
		Config: config, metrics: newMetrics(config.Metrics), compress: compress,
		unavailable: telemetry.CauseSampler{Every: unavailableLogEvery},
	}, nil
}

// Handle registers routes.
func (ro *Router) Handle(mux *http.ServeMux, routes ...Route) {
	for _, route := range routes {
		mux.Handle(route.Pattern, ro.Handler(route))
	}
}
