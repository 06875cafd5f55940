// Package metricstest reads the metrics of a registry in tests.
package metricstest

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Values reads all metrics, each by its name and its labels' values with a space between. Of a histogram it reads the number of
// observations and their sum, with " count" and " sum" behind these. A histogram without classic buckets fails the test, because
// the alerts read those.
func Values(tb testing.TB, registry prometheus.Gatherer) map[string]float64 {
	tb.Helper()
	families, err := registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			words := []string{family.GetName()}
			for _, label := range m.GetLabel() {
				words = append(words, label.GetValue())
			}
			name, h := strings.Join(words, " "), m.GetHistogram()
			if h == nil {
				all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
				continue
			}
			all[name+" count"], all[name+" sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
			if len(h.GetBucket()) == 0 {
				tb.Errorf("%s has no classic buckets", name)
			}
		}
	}
	return all
}

// Of reads the counters or gauges of one name by their labels' values.
func Of(tb testing.TB, registry prometheus.Gatherer, name string) map[string]float64 {
	tb.Helper()
	of := map[string]float64{}
	for series, value := range Values(tb, registry) {
		if metric, labels, _ := strings.Cut(series, " "); metric == name {
			of[labels] = value
		}
	}
	return of
}

// Sum adds up the counters or gauges of one name.
func Sum(tb testing.TB, registry prometheus.Gatherer, name string) (sum float64) {
	tb.Helper()
	for _, value := range Of(tb, registry, name) {
		sum += value
	}
	return sum
}
