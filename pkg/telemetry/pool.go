package telemetry

import "github.com/prometheus/client_golang/prometheus"

// PoolState is the state of a connection pool. Open and Limit are connections; InUse is how many of the open ones are in use.
// Waits and TimedOut count, since the start, the waits for a connection and those that timed out. A field that the pool does not
// report stays 0.
type PoolState struct {
	Limit, Open, InUse int
	Waits, TimedOut    uint64
}

// Pool returns the metrics of a connection pool, for a registry. service is the prefix of their names and name the label of the
// pool; read must be fast and safe for concurrent use.
func Pool(service, name string, read func() PoolState) prometheus.Collector {
	describe := func(metric, help string) *prometheus.Desc {
		return prometheus.NewDesc("intents_"+service+"_pool_"+metric, help, nil, prometheus.Labels{"pool": name})
	}
	return pool{
		read:     read,
		limit:    describe("connections_limit", "Connections that the pool may have open at once."),
		open:     describe("connections_open", "Connections that the pool has open, busy or idle."),
		inUse:    describe("connections_in_use", "Connections in use. Near the limit, requests wait for one."),
		waits:    describe("waits_total", "Times that a request waited for a connection. A rise means that the pool is too small, or the server slow."),
		timedOut: describe("timeouts_total", "Times that the wait for a connection timed out. A rise means that requests fail because the pool is too small, or the server slow."),
	}
}

type pool struct {
	read                                func() PoolState
	limit, open, inUse, waits, timedOut *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (p pool) Describe(descriptions chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(p, descriptions)
}

// Collect implements prometheus.Collector.
func (p pool) Collect(metrics chan<- prometheus.Metric) {
	state := p.read()
	gauge := func(d *prometheus.Desc, value int) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value))
	}
	counter := func(d *prometheus.Desc, value uint64) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value))
	}
	gauge(p.limit, state.Limit)
	gauge(p.open, state.Open)
	gauge(p.inUse, state.InUse)
	counter(p.waits, state.Waits)
	counter(p.timedOut, state.TimedOut)
}
