package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// checkTimeout bounds one readiness check. An orchestrator's probe times out after a second or more.
const checkTimeout = 800 * time.Millisecond

// Check is the readiness check of one dependency. Probe returns nil if the dependency is available, and otherwise an error that
// tells an operator what is missing. It must respect its context.
type Check struct {
	Name  string
	Probe func(context.Context) error
	// Optional marks a dependency that the service works without, in a degraded way. A failure is reported, and the service is
	// still ready.
	Optional bool
}

type checks []Check

// failing runs the checks concurrently and returns the errors of the failed ones by their index.
func (c checks) failing(ctx context.Context) map[int]error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	results := make([]chan error, len(c))
	for i, check := range c {
		results[i] = make(chan error, 1)
		go func() { results[i] <- check.Probe(ctx) }()
	}
	failed := map[int]error{}
	for i := range c {
		if err := <-results[i]; err != nil {
			failed[i] = err
		}
	}
	return failed
}

var checkPassing = prometheus.NewDesc("intents_check_passing",
	"1 while what the service needs is there, by the name that /readyz gives it, else 0. 0 means that the service is not ready, "+
		"or works worse where the thing is optional.",
	[]string{"check", "optional"}, nil)

// Describe makes the checks a prometheus.Collector, which runs them at each scrape.
func (c checks) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- checkPassing }

// Collect runs the checks.
func (c checks) Collect(metrics chan<- prometheus.Metric) {
	failed := c.failing(context.Background())
	for i, check := range c {
		passing, optional := 1.0, "false"
		if failed[i] != nil {
			passing = 0
		}
		if check.Optional {
			optional = "true"
		}
		metrics <- prometheus.MustNewConstMetric(checkPassing, prometheus.GaugeValue, passing, check.Name, optional)
	}
}
