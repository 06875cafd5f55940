package postgres

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/core/intent/transfer"
)

type metrics struct {
	transitions       *prometheus.CounterVec
	batch             prometheus.Histogram
	writing           prometheus.Histogram
	waiting           prometheus.Gauge
	refused           prometheus.Counter
	keyChangeLag      prometheus.Histogram
	expiryLag         prometheus.Gauge
	expiryLagFailures prometheus.Counter
	lists             *prometheus.CounterVec
	pruned            *prometheus.CounterVec
	pruneFailures     prometheus.Counter
	feedEvents        prometheus.Counter
	feedDelay         prometheus.Histogram
}

// inserted is the from label of an intent that was inserted, which had no status before.
const inserted = "new"

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
		keyChangeLag: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "intents_core_key_change_lag_seconds",
			Help:    "Age of the oldest change in a response of the key change feed. A rise means that revoked keys stay valid for longer.",
			Buckets: []float64{.01, .025, .05, .1, .15, .25, .5, 1, 2.5, 5, 30},
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
	m.pruned = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_core_pruned_rows_total",
		Help: "Rows that this core has deleted because they had expired or were older than their retention, by table. Sum it over cores; " +
			"no rise for days while the tables grow means that pruning fails.",
	}, []string{"table"})
	m.pruneFailures = factory.NewCounter(prometheus.CounterOpts{
		Name: "intents_core_prune_failures_total",
		Help: "Prunings that ended early with an error, which the log has. Core tries again within the hour.",
	})
	m.addFeed(factory)
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
	m.countTransitions(inserted, transfer.Created, 0)
	m.countTransitions(transfer.Created, transfer.Cancelled, 0)
	m.countTransitions(transfer.Created, transfer.Expired, 0)
	return m
}

func (m *metrics) addFeed(factory promauto.Factory) {
	m.feedEvents = factory.NewCounter(prometheus.CounterOpts{
		Name: "intents_core_feed_events_total",
		Help: "Events that this core has given their position in the feed. Sum it over cores; it rises as fast as the transitions do, and " +
			"no rise while those rise means that readers and webhooks get nothing.",
	})
	m.feedDelay = factory.NewHistogram(prometheus.HistogramOpts{
		Name: "intents_core_feed_delay_seconds",
		Help: "Time from an event until it has its position in the feed and can be read there. A rise means that clients hear of changes later; " +
			"after an upgrade the events of before count with their age.",
		Buckets: []float64{.01, .025, .05, .1, .15, .25, .5, 1, 2.5, 5, 30},
	})
}

// The servers that batches of lists are read from.
const (
	sourcePrimary = "primary"
	sourceReplica = "replica"
)

func (m *metrics) countListBatch(source string) { m.lists.WithLabelValues(source).Inc() }

// countEvents counts transitions that have happened.
func (m *metrics) countEvents(events []transfer.Event) {
	for _, e := range events {
		m.countTransitions(e.From, e.To, 1)
	}
}

// countTransitions counts n intents that went from one status to another.
func (m *metrics) countTransitions(from, to transfer.Status, n int) {
	m.transitions.WithLabelValues(string(from), string(to)).Add(float64(n))
}
