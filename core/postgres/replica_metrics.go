package postgres

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Why a list was read from the primary although there is a replica.
const (
	fellChanged     = "changed"
	fellBehind      = "behind"
	fellConflict    = "conflict"
	fellDiverged    = "diverged"
	fellUnreachable = "unreachable"
	fellFailed      = "failed"
)

// recoveryConflict is the SQLSTATE of a statement that a standby cancelled so that it could go on replaying.
const recoveryConflict = "40001"

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
				"unreachable; or failed. A rise of any but changed means that the primary bears more than it should.",
		}, []string{"reason"}),
		lagSeconds: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_replica_lag_seconds",
			Help: "How long ago the primary was what the replica was when it was looked at last. A rise means that the replica " +
				"does not keep up, and that accounts which wrote are read from the primary for longer.",
		}),
		lagBytes: factory.NewGauge(prometheus.GaugeOpts{
			Name: "intents_core_replica_lag_bytes",
			Help: "Write-ahead log that the replica had yet to replay when it was looked at last. A steady rise means that it has stopped.",
		}),
	}
	for _, reason := range []string{fellChanged, fellBehind, fellConflict, fellDiverged, fellUnreachable, fellFailed} {
		m.fallbacks.WithLabelValues(reason)
	}
	return m
}

func (m *replicaMetrics) fellBack(err error) {
	m.fallbacks.WithLabelValues(fallbackReason(err)).Inc()
}

// errChanged says that the account has written since the newest moment that the replica has reached.
var errChanged = errors.New("the account has changed")

func fallbackReason(err error) string {
	switch {
	case errors.Is(err, errChanged):
		return fellChanged
	case errors.Is(err, errBehind):
		return fellBehind
	case errors.Is(err, errDiverged):
		return fellDiverged
	case sqlState(err) == recoveryConflict:
		return fellConflict
	case errors.Is(err, errNotFollowed), Unavailable(err):
		return fellUnreachable
	}
	return fellFailed
}
