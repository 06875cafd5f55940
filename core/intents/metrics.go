package intents

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/core/transfer"
)

type metrics struct {
	transitions       *prometheus.CounterVec
	batch             prometheus.Histogram
	writing           prometheus.Histogram
	waiting           prometheus.Gauge
	refused           prometheus.Counter
	expiryLag         prometheus.Gauge
	expiryLagFailures prometheus.Counter
	lists             *prometheus.CounterVec
}

// newIntent is the from label of an intent that was inserted, which had no status before.
const newIntent = "new"

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	m := &metrics{
		transitions: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_transitions_total",
			Help: "Changes of an intent's status that this core has written; from is new for a created intent. Sum it over cores.",
		}, []string{"from", "to"}),
		batch: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "intents_core_write_batch_intents",
			Help: "New intents per commit. It grows with load; a rise at the same load means that commits have become slow.",
			// From one intent to maxBatch.
			Buckets: prometheus.ExponentialBuckets(1, 2, 8),
		}),
		writing: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "intents_core_write_duration_seconds",
			Help:    "Duration of one commit of new intents. A rise points at the database's disk.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}),
		waiting: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_writes_waiting",
			Help: "New intents that wait for a commit. At intents_core_writes_waiting_limit further ones get 503.",
		}),
		refused: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_writes_refused_total",
			Help: "New intents refused because too many waited for a commit, or because earlier ones waited too long for a lock or a connection. Any rise means that the database does not keep up.",
		}),
		expiryLag: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_expiry_lag_seconds",
			Help: "Time since the deadline of the oldest intent that should have expired; 0 when none is overdue. A rise means that " +
				"expiry fails or does not keep up. Take the maximum over cores.",
		}),
		expiryLagFailures: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_expiry_lag_failures_total",
			Help: "Failed reads of intents_core_expiry_lag_seconds, which then keeps its last value.",
		}),
	}
	m.lists = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_core_list_batches_total",
		Help: "Batches of up to 1,000 intents read for lists, by source: primary or replica. A rise of the primary's share " +
			"means that the replica is not used; intents_core_replica_fallbacks_total says why.",
	}, []string{"source"})
	for _, source := range []string{sourcePrimary, sourceReplica} {
		m.lists.WithLabelValues(source)
	}
	factory.NewGauge(prometheus.GaugeOpts{
		Name: "intents_core_writes_waiting_limit",
		Help: "Limit of the new intents that may wait for a commit.",
	}).Set(maxQueued)
	// The transitions of this version exist from the start, so that the first of each counts as a rise.
	m.countTransitions(newIntent, transfer.Created, 0)
	m.countTransitions(transfer.Created, transfer.Cancelled, 0)
	m.countTransitions(transfer.Created, transfer.Expired, 0)
	return m
}

// The servers that batches of lists are read from.
const (
	sourcePrimary = "primary"
	sourceReplica = "replica"
)

func (m *metrics) countListBatch(source string) { m.lists.WithLabelValues(source).Inc() }

// CountTransitions counts transitions that have happened; simulated ones have not.
func (s *Store) CountTransitions(events []transfer.Event) { s.metrics.countEvents(events) }

func (m *metrics) countEvents(events []transfer.Event) {
	for _, e := range events {
		if !e.Simulated {
			m.countTransitions(e.From, e.To, 1)
		}
	}
}

// countTransitions counts n intents that went from one status to another.
func (m *metrics) countTransitions(from, to transfer.Status, n int) {
	m.transitions.WithLabelValues(string(from), string(to)).Add(float64(n))
}
