package telemetry

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkTimeout bounds one readiness check: an orchestrator's probe gives up after a second or more.
const checkTimeout = 800 * time.Millisecond

// Check is one thing a service needs before it may take requests. Probe returns nil when it is there and otherwise an
// error that tells an operator what is missing; it must respect its context.
type Check struct {
	Name  string
	Probe func(context.Context) error
}

// NewRegistry holds the metrics of the Go runtime, the process and the build; services add their own.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	return registry
}

// Operations serves what only operators may see, on a listener of its own: /metrics, /livez (200 while the process
// runs), /readyz (200, or 503 with the names of the failing checks) and /debug/pprof.
func Operations(registry *prometheus.Registry, checks ...Check) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { writeReport(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		writeReport(w, failing(r.Context(), checks))
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// failing runs the checks side by side and maps the name of each that failed to why.
func failing(ctx context.Context, checks []Check) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	results := make([]chan error, len(checks))
	for i, check := range checks {
		results[i] = make(chan error, 1)
		go func() { results[i] <- check.Probe(ctx) }()
	}
	missing := map[string]string{}
	for i, check := range checks {
		if err := <-results[i]; err != nil {
			missing[check.Name] = err.Error()
		}
	}
	return missing
}

func writeReport(w http.ResponseWriter, missing map[string]string) {
	report := struct {
		Status  string            `json:"status"`
		Missing map[string]string `json:"missing,omitempty"`
	}{Status: "ok", Missing: missing}
	status := http.StatusOK
	if len(missing) > 0 {
		report.Status, status = "unavailable", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(report) // the prober is gone if this fails
}
