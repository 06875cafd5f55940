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

// server is a built program that a test starts, stops and kills.
type server struct {
	url, opsURL string
	command     embedded.Command
	process     *embedded.Process
	log         asynctest.Buffer
}

type (
	gateway    struct{ server }
	coreServer struct{ server }
)

// direct never uses a proxy that the environment names.
var direct = &http.Client{Transport: &http.Transport{}, Timeout: 15 * time.Second}

// prepare sets the command, whose addresses are free ones, and stops the server when the test ends. Its log is printed if the test fails.
func (s *server) prepare(t *testing.T, name, binaries string, args []string, env func(listen, ops string) []string) {
	t.Helper()
	listen, ops := freeAddress(t), freeAddress(t)
	s.url, s.opsURL = "http://"+listen, "http://"+ops
	s.command = embedded.Command{
		Name: name, Path: filepath.Join(cmp.Or(binaries, shared.binaries), name), Args: args, Env: stack.Environ(),
		Output: func(line string) { fmt.Fprintln(&s.log, line) },
	}
	if env != nil {
		s.command.Env = append(s.command.Env, env(listen, ops)...)
	}
	t.Cleanup(func() {
		if s.process != nil {
			s.signal(t, syscall.SIGCONT)
			s.process.Kill()
		}
		if t.Failed() {
			t.Logf("the log of %s %s:\n%s", name, listen, s.log.String())
		}
	})
}

func (s *server) start(t *testing.T) {
	t.Helper()
	process, err := embedded.StartProcess(s.command)
	if err != nil {
		t.Fatal(err)
	}
	s.process = process
}

func (s *server) awaitReady(t *testing.T) {
	t.Helper()
	asynctest.Eventually(t, s.command.Name+" is ready", func() bool {
		select {
		case <-s.process.Done():
			t.Fatalf("%s ended: %v", s.command.Name, s.process.Err())
		default:
		}
		return isOK(t, s.opsURL+"/readyz")
	})
}

// stop ends it as an operator does, with the time to finish its requests.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.process.Stop(syscall.SIGTERM, 30*time.Second); err != nil {
		t.Error(err)
	}
}

func (s *server) kill() { s.process.Kill() }

func (s *server) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	select {
	case <-s.process.Done():
	default:
		if err := s.process.Signal(signal); err != nil {
			t.Error(err)
		}
	}
}

func isOK(t *testing.T, url string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
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

// fleetConfig says what gateways depend on; zero values are the shared core, no Redis and the built programs.
type fleetConfig struct {
	redis    string // URL
	core     string // URL, or several with commas
	binaries string
	env      []string // NAME=value, which override others
}

// startGateways starts so many until the test ends, and returns when they are ready.
func startGateways(t *testing.T, count int, config fleetConfig) []*gateway {
	t.Helper()
	fleet := make([]*gateway, count)
	for n := range fleet {
		fleet[n] = &gateway{}
		fleet[n].prepare(t, "gateway", config.binaries, nil, func(listen, ops string) []string {
			return append([]string{
				"GATEWAY_LISTEN=" + listen,
				"GATEWAY_OPS_LISTEN=" + ops,
				"GATEWAY_CORE_URL=" + cmp.Or(config.core, shared.stack.Env().CoreURL),
				"GATEWAY_CORE_SECRET=" + secret,
				"GATEWAY_REDIS_URL=" + config.redis,
				"GATEWAY_ACCESS_LOG=false",
				"GATEWAY_DRAIN_DELAY=0s",
			}, config.env...)
		})
		fleet[n].start(t)
	}
	for _, g := range fleet {
		g.awaitReady(t)
	}
	return fleet
}

// patient are settings of gateways that never mistake a busy machine for a slow Redis.
func patient(settings ...string) []string { return append(settings, "GATEWAY_LIMIT_BUDGET=5s") }

// startCores starts so many on a database until the test ends, and returns when they are ready.
func startCores(t *testing.T, db *database, count int, env ...string) []*coreServer {
	t.Helper()
	return startCoresOf(t, shared.binaries, db, count, env...)
}

func startCoresOf(t *testing.T, binaries string, db *database, count int, env ...string) []*coreServer {
	t.Helper()
	all := make([]*coreServer, count)
	for n := range all {
		all[n] = &coreServer{}
		all[n].prepare(t, "core", binaries, []string{"serve"}, func(listen, ops string) []string {
			return append([]string{
				"CORE_LISTEN=" + listen,
				"CORE_OPS_LISTEN=" + ops,
				"CORE_DATABASE_URL=" + db.url,
				"CORE_DATABASE_CONNECTIONS=6", // several tests' cores share one Postgres
				"CORE_REDIS_URL=" + shared.stack.Env().RedisURL,
				"CORE_GATEWAY_SECRET=" + secret,
			}, env...)
		})
		all[n].start(t)
	}
	for _, c := range all {
		c.awaitReady(t)
	}
	return all
}

// startServices starts a core with these settings on the database, and a gateway with a Redis of its own before it.
func startServices(t *testing.T, db *database, coreEnv ...string) (*coreServer, []*gateway) {
	t.Helper()
	cores := startCores(t, db, 1, coreEnv...)
	return cores[0], startGateways(t, 1, fleetConfig{redis: startRedis(t).url(), core: cores[0].url, env: patient()})
}

// urlsOf is GATEWAY_CORE_URL for these cores.
func urlsOf(all []*coreServer) string {
	urls := make([]string, len(all))
	for n, c := range all {
		urls[n] = c.url
	}
	return strings.Join(urls, ",")
}

// coresUp is how many cores each gateway of the fleet sends requests to, at the least.
func coresUp(t *testing.T, fleet []*gateway) int {
	t.Helper()
	least := -1
	for _, g := range fleet {
		if up := int(g.metrics(t).sum("intents_gateway_core_up{")); least < 0 || up < least {
			least = up
		}
	}
	return least
}

// metrics are a process's metrics, by name and labels.
type metrics map[string]float64

func (s *server) metrics(t *testing.T) metrics {
	t.Helper()
	m, err := s.readMetrics(t.Context())
	if err != nil {
		t.Fatalf("read the metrics of %s: %v", s.command.Name, err)
	}
	return m
}

func (s *server) readMetrics(ctx context.Context) (metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.opsURL+"/metrics", nil)
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
		at := strings.LastIndexByte(lines.Text(), ' ')
		if at < 0 || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if value, err := strconv.ParseFloat(lines.Text()[at+1:], 64); err == nil {
			all[lines.Text()[:at]] = value
		}
	}
	return all, lines.Err()
}

// sum adds up the metrics whose name and labels begin with prefix.
func (m metrics) sum(prefix string) (total float64) {
	for name, value := range m {
		if strings.HasPrefix(name, prefix) {
			total += value
		}
	}
	return total
}
