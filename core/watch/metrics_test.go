package watch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

// series are the counters and gauges of Sepolia with their values, without the prefix of their names.
func (w *world) series() (counters, gauges map[string]float64) {
	w.Helper()
	counters, gauges = map[string]float64{}, map[string]float64{}
	for series, value := range metricstest.Values(w, w.metrics) {
		name, labels, found := strings.Cut(strings.TrimPrefix(series, "intents_core_chain_"), " "+sepolia.String())
		switch {
		case !found || strings.HasSuffix(labels, " count") || strings.HasSuffix(labels, " sum"):
		case strings.HasSuffix(name, "_total"):
			counters[name+labels] = value
		default:
			gauges[name+labels] = value
		}
	}
	return counters, gauges
}

// Every counter of a chain is exported before its first event, which increase() does not see otherwise.
func TestMetrics_InitialCounters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	want := map[string]float64{
		"tick_failures_total": 0, "unmatched_events_total": 0, "repaired_events_total": 0, "confirmed_alone_total": 0, "unreadable_attempts_total": 0,
		"claimed_unfilled_total": 0, "unpaid_opens_total": 0, "flooded_blocks_total": 0,
		"reorgs_total 1": 0, "reorgs_total 2-5": 0, "reorgs_total 6-20": 0, "reorgs_total more": 0,
	}
	for _, node := range w.nodes[sepolia] {
		host := strings.TrimPrefix(node.URL(), "http://")
		want["disagreements_total "+host], want["lagging_total "+host] = 0, 0
	}
	got, _ := w.series()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The gauges of a chain are exported by the process that follows it and by no other.
func TestMetrics_FollowerGauges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	_, gauges := w.series()
	if gauges["tick_interval_seconds"] != 0.1 || gauges["head_block"] != 19 || gauges["read_timestamp_seconds"] == 0 {
		t.Errorf("the chain is looked at every 100 ms, and its head is 19: %v", gauges)
	}
	names := make([]string, 0, len(gauges))
	for name := range gauges {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"cursor_lag_blocks", "head_block", "read_timestamp_seconds", "stopped", "tick_interval_seconds"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	w.chains[sepolia].MineEmpty(1)
	stop := w.start()
	asynctest.Eventually(t, "a watcher that follows the chain", func() bool { _, gauges = w.series(); return gauges["head_block"] == 20 })
	stop()
	if _, gauges = w.series(); len(gauges) != 0 {
		t.Errorf("another process may follow the chain, and these are still exported: %v", gauges)
	}
}
