package system

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Metrics are a process's metrics, by name and labels as it writes them.
type Metrics map[string]float64

// Metrics reads the metrics of the operations listener.
func (p *Process) Metrics(t *testing.T) Metrics {
	t.Helper()
	m, err := p.TryMetrics(t)
	if err != nil {
		t.Fatalf("read the metrics of %s: %v", p.Command.Path, err)
	}
	return m
}

// TryMetrics is Metrics for processes that may be down.
func (p *Process) TryMetrics(t *testing.T) (Metrics, error) {
	t.Helper()
	answer, err := probe(t, p.OpsURL+"/metrics")
	if err != nil {
		return nil, err
	}
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("%s/metrics: %d", p.OpsURL, answer.Status)
	}
	return ParseMetrics(answer.Body), nil
}

// ParseMetrics reads metrics in Prometheus' text format.
func ParseMetrics(text []byte) Metrics {
	all := Metrics{}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		at := bytes.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		if value, err := strconv.ParseFloat(string(line[at+1:]), 64); err == nil {
			all[string(line[:at])] = value
		}
	}
	return all
}

// Sum adds up the metrics whose name and labels begin with prefix.
func (m Metrics) Sum(prefix string) (total float64) {
	for name, value := range m {
		if strings.HasPrefix(name, prefix) {
			total += value
		}
	}
	return total
}
