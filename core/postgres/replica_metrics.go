package postgres

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The reasons why a list was read from the primary although there is a replica.
const (
	fallbackChanged     = "changed"
	fallbackBehind      = "behind"
	fallbackConflict    = "conflict"
	fallbackDiverged    = "diverged"
	fallbackUnreachable = "unreachable"
	fallbackFailed      = "failed"
)

type replicaMetrics struct {
	fallbacks  *prometheus.CounterVec
	lagSeconds prometheus.Gauge
	lagBytes   prometheus.Gauge
}

func newReplicaMetrics(registry prometheus.Registerer) *replicaMetrics {
	factory := promauto.With(registry)
	m := &replicaMetrics{
		fallbacks: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_replica_fallbacks_total",
			Help: "Times that a list turned to the primary although there is a replica: changed, as the account wrote just before; " +
				"behind, as the replica lags; conflict, as replaying cancelled it; diverged, as the server is no standby of the primary's; " +
				"unreachable; or failed. A rise of any but changed means that the primary has more load than it should.",
		}, []string{"reason"}),
		lagSeconds: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_replica_lag_seconds",
			Help: "Age of the newest state of the primary that the replica is known to have replayed, at most twice its lag and 0.4 s. A rise " +
				"means that the replica does not keep up, and that accounts which wrote are read from the primary for longer.",
		}),
		lagBytes: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_replica_lag_bytes",
			Help: "Write-ahead log that the replica had yet to replay when its position was last read. A steady rise means that it has stopped.",
		}),
	}
	for _, reason := range []string{fallbackChanged, fallbackBehind, fallbackConflict, fallbackDiverged, fallbackUnreachable, fallbackFailed} {
		m.fallbacks.WithLabelValues(reason)
	}
	return m
}

func (m *replicaMetrics) countFallback(err error) {
	m.fallbacks.WithLabelValues(fallbackReason(err)).Inc()
}

// errChanged means that the account has changed since the newest snapshot that the replica has replayed.
var errChanged = errors.New("the account has changed")

func fallbackReason(err error) string {
	switch {
	case errors.Is(err, errChanged):
		return fallbackChanged
	case errors.Is(err, errBehind):
		return fallbackBehind
	case errors.Is(err, errDiverged):
		return fallbackDiverged
	case SQLState(err) == serializationFailure:
		return fallbackConflict
	case errors.Is(err, errNotFollowed), Unavailable(err):
		return fallbackUnreachable
	}
	return fallbackFailed
}
