package retention

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type pruneMetrics struct {
	rows     *prometheus.CounterVec
	failures prometheus.Counter
}

func newPruneMetrics(registry prometheus.Registerer) *pruneMetrics {
	factory := promauto.With(registry)
	return &pruneMetrics{
		rows: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_pruned_rows_total",
			Help: "Rows that this core has deleted because they had expired or were older than their retention, by table. Sum it over cores; " +
				"no rise for days while the tables grow means that pruning fails.",
		}, []string{"table"}),
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "intents_core_prune_failures_total",
			Help: "Prunings that ended early with an error, which the log has. Core tries again within the hour.",
		}),
	}
}
