package faults_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// gateway is one built gateway, running.
type gateway struct {
	url, opsURL string
	command     embedded.Command
	process     *embedded.Process
}

// fleetConfig says what gateways stand on; zero values are the shared core, and no Redis.
type fleetConfig struct {
	redis string // address, host:port
	core  string // URL
	// binaries is where the program is, the built ones' directory if empty.
	binaries string
	env      []string // NAME=value, which wins
}

// startGateways starts so many until the test ends, and returns when they are ready. Their log is told if the test fails.
func startGateways(t *testing.T, count int, config fleetConfig) []*gateway {
	t.Helper()
	if config.core == "" {
		config.core = shared.stack.Env().CoreURL
	}
	fleet := make([]*gateway, count)
	for n := range fleet {
		fleet[n] = startGateway(t, config)
	}
	for _, g := range fleet {
		asynctest.Eventually(t, "a gateway is ready", func() bool { return g.ready(t) })
	}
	return fleet
}

func startGateway(t *testing.T, config fleetConfig) *gateway {
	t.Helper()
	addresses := [2]string{freeAddress(t), freeAddress(t)}
	env := append(stack.Environ(),
		"GATEWAY_LISTEN="+addresses[0],
		"GATEWAY_OPS_LISTEN="+addresses[1],
		"GATEWAY_CORE_URL="+config.core,
		"GATEWAY_CORE_SECRET="+secret,
		"GATEWAY_REDIS_URL=redis://"+config.redis+"/0",
		"GATEWAY_ACCESS_LOG=false",
		"GATEWAY_DRAIN_DELAY=0s",
	)
	var log asynctest.Buffer
	g := &gateway{url: "http://" + addresses[0], opsURL: "http://" + addresses[1], command: embedded.Command{
		Name: "gateway", Path: filepath.Join(cmp.Or(config.binaries, shared.binaries), "gateway"), Env: append(env, config.env...),
		Output: func(line string) { fmt.Fprintln(&log, line) },
	}}
	g.start(t)
	t.Cleanup(func() {
		g.stop(t)
		if t.Failed() {
			t.Logf("the log of gateway %s:\n%s", addresses[0], log.String())
		}
	})
	return g
}

func (g *gateway) start(t *testing.T) {
	t.Helper()
	process, err := embedded.StartProcess(g.command)
	if err != nil {
		t.Fatal(err)
	}
	g.process = process
}

// stop ends it as an operator does, with the time to finish its requests.
func (g *gateway) stop(t *testing.T) {
	t.Helper()
	if err := g.process.Stop(syscall.SIGTERM, 20*time.Second); err != nil {
		t.Error(err)
	}
}

// direct never goes through a proxy that the environment may name.
var direct = &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}

func (g *gateway) ready(t *testing.T) bool {
	t.Helper()
	select {
	case <-g.process.Done():
		t.Fatalf("a gateway ended: %v", g.process.Err())
	default:
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.opsURL+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := direct.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// metrics are all of a gateway's at one moment, by the text before the value: name{label="value"}.
type metrics map[string]float64

func (g *gateway) metrics(t *testing.T) metrics {
	t.Helper()
	m, err := g.readMetrics(t.Context())
	if err != nil {
		t.Fatalf("read a gateway's metrics: %v", err)
	}
	return m
}

func (g *gateway) readMetrics(ctx context.Context) (metrics, error) {
	return readMetrics(ctx, g.opsURL)
}

// readMetrics are those of any process.
func readMetrics(ctx context.Context, opsURL string) (metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, opsURL+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := direct.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	all := metrics{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, ok := cutLast(lines.Text())
		if number, err := strconv.ParseFloat(value, 64); ok && err == nil {
			all[name] = number
		}
	}
	return all, lines.Err()
}

func cutLast(line string) (before, after string, ok bool) {
	at := strings.LastIndexByte(line, ' ')
	if at < 0 || strings.HasPrefix(line, "#") {
		return "", "", false
	}
	return line[:at], line[at+1:], true
}

// sum adds up the metrics whose text begins like this, over labels.
func (m metrics) sum(prefix string) (total float64) {
	for name, value := range m {
		if strings.HasPrefix(name, prefix) {
			total += value
		}
	}
	return total
}
