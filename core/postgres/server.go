package postgres

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// serverState is what Postgres tells core's role of itself.
type serverState struct {
	Connections, ConnectionsLimit float64

	// Synchronous reports whether commits wait for a standby. SynchronousStandbys are those that they can wait for; nil where the role
	// may not see it.
	Synchronous         bool
	SynchronousStandbys *float64

	slots []slotState
}

type slotState struct {
	Name         string
	Active, Lost bool
	Retained     float64
}

// Every role sees how many others are connected and how many servers replicate, and only one with pg_read_all_stats how they do: without
// it, it is known that no standby is synchronous only while none is there.
const serverQuery = `SELECT
	(SELECT count(*)::float8 FROM pg_stat_activity WHERE datid IS NOT NULL AND usesysid IS NOT NULL) AS connections,
	current_setting('max_connections')::float8 - current_setting('superuser_reserved_connections')::float8
		- coalesce(current_setting('reserved_connections', true), '0')::float8 AS connections_limit,
	current_setting('synchronous_standby_names') <> '' AS synchronous,
	CASE WHEN pg_has_role('pg_read_all_stats', 'USAGE') OR count(*) = 0
		THEN (count(*) FILTER (WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')))::float8 END AS synchronous_standbys
	FROM pg_stat_replication`

const slotsQuery = `SELECT slot_name AS name, active, wal_status IS NOT DISTINCT FROM 'lost' AS lost,
	coalesce(CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) END, 0)::float8 AS retained
	FROM pg_replication_slots WHERE NOT temporary`

// ReadServer updates the metrics of the server: its connections, its synchronous standbys and its replication slots.
func (d *DB) ReadServer(ctx context.Context) error {
	var state serverState
	if err := d.NewRaw(serverQuery).Scan(ctx, &state); err != nil {
		return fmt.Errorf("read the state of Postgres: %w", err)
	}
	if err := d.NewRaw(slotsQuery).Scan(ctx, &state.slots); err != nil {
		return fmt.Errorf("read the replication slots: %w", err)
	}
	d.server.state.Store(&state)
	return nil
}

// serverMetrics exports the state that was read last, with a series for each slot that is there.
type serverMetrics struct {
	state atomic.Pointer[serverState]

	connections, connectionsLimit, synchronous, standbys *prometheus.Desc
	active, lost, retained                               *prometheus.Desc
}

func newServerMetrics(registry prometheus.Registerer) *serverMetrics {
	described := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("intents_core_postgres_"+name, help, labels, nil)
	}
	m := &serverMetrics{
		connections: described("server_connections", "Connections of all clients to the Postgres server, those of others too. Near "+
			"intents_core_postgres_server_connections_limit new ones are refused. Take the maximum over cores."),
		connectionsLimit: described("server_connections_limit", "Connections that the Postgres server gives to roles that are no superusers."),
		synchronous: described("synchronous_replication", "1 if synchronous_standby_names is set, so that commits wait for a standby. A fall means that "+
			"somebody, such as Patroni without a standby, has turned it off: a failover can lose acknowledged writes."),
		standbys: described("synchronous_standbys", "Standbys that commits can wait for. 0 with synchronous_replication 1 means that no write ends. Absent "+
			"while something replicates and core's role lacks pg_read_all_stats, which shows how."),
		active: described("slot_active", "1 if a standby or receiver reads the replication slot. 0 means that it keeps log for nobody, until the disk is full "+
			"or max_slot_wal_keep_size is reached.", "slot"),
		lost: described("slot_lost", "1 if the replication slot no longer has the log that its reader needs, which must be made anew.", "slot"),
		retained: described("slot_retained_bytes", "Write-ahead log that the replication slot keeps. A steady rise means that its reader has stopped or is too slow.",
			"slot"),
	}
	if registry != nil {
		registry.MustRegister(m)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *serverMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.connections, m.connectionsLimit, m.synchronous, m.standbys, m.active, m.lost, m.retained} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *serverMetrics) Collect(to chan<- prometheus.Metric) {
	state := m.state.Load()
	if state == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(m.connections, state.Connections)
	gauge(m.connectionsLimit, state.ConnectionsLimit)
	gauge(m.synchronous, oneIf(state.Synchronous))
	if state.SynchronousStandbys != nil {
		gauge(m.standbys, *state.SynchronousStandbys)
	}
	for _, slot := range state.slots {
		gauge(m.active, oneIf(slot.Active), slot.Name)
		gauge(m.lost, oneIf(slot.Lost), slot.Name)
		gauge(m.retained, slot.Retained, slot.Name)
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
