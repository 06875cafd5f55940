package telemetry

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry creates a registry with the metrics of the Go runtime, the process and the build.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		// The scheduler's metrics distinguish a process that lacks CPU from one that waits for others.
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsScheduler)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newBuildInfo(),
	)
	return registry
}

// Operations returns the handler of the operations listener: /metrics, /livez (200 while the process runs), /readyz (503 with the
// reasons if a required check fails, otherwise 200, with the failed optional checks) and /debug/pprof. It registers the checks as
// metrics.
func Operations(registry *prometheus.Registry, check ...Check) http.Handler {
	all := checks(check)
	registry.MustRegister(all)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { writeReport(w, report{}) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		missing := report{Missing: map[string]string{}, Degraded: map[string]string{}}
		for i, err := range all.failing(r.Context()) {
			if all[i].Optional {
				missing.Degraded[all[i].Name] = err.Error()
			} else {
				missing.Missing[all[i].Name] = err.Error()
			}
		}
		writeReport(w, missing)
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// report is the response of a probe; the maps have the reasons by the name of the check.
type report struct {
	Status   string            `json:"status"`
	Missing  map[string]string `json:"missing,omitempty"`
	Degraded map[string]string `json:"degraded,omitempty"`
}

func writeReport(w http.ResponseWriter, r report) {
	status := http.StatusOK
	r.Status = "ok"
	if len(r.Missing) > 0 {
		r.Status, status = "unavailable", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(r) // fails only if the prober has disconnected
}
