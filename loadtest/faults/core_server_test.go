package faults_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// coreServer is a core of a test's own.
type coreServer struct {
	url, opsURL string
	env         []string
	binaries    string
	process     *embedded.Process
	log         asynctest.Buffer
}

// startCores starts so many until the test ends, and returns when they are ready.
func startCores(t *testing.T, count int) []*coreServer {
	t.Helper()
	all := make([]*coreServer, count)
	for n := range all {
		all[n] = newCoreServer(t)
		all[n].start(t)
	}
	for _, c := range all {
		c.awaitReady(t)
	}
	return all
}

func newCoreServer(t *testing.T) *coreServer {
	t.Helper()
	return newCoreServerOn(t, shared.database)
}

// newCoreServerOn makes a core on this database, which is not started yet.
func newCoreServerOn(t *testing.T, db *database) *coreServer {
	t.Helper()
	addresses := [2]string{freeAddress(t), freeAddress(t)}
	c := &coreServer{url: "http://" + addresses[0], opsURL: "http://" + addresses[1], binaries: shared.binaries}
	c.env = append(stack.Environ(),
		"CORE_LISTEN="+addresses[0],
		"CORE_OPS_LISTEN="+addresses[1],
		"CORE_DATABASE_URL="+db.url,
		"CORE_DATABASE_CONNECTIONS=6", // several tests' cores share one Postgres
		"CORE_REDIS_URL="+shared.stack.Env().RedisURL,
		"CORE_GATEWAY_SECRET="+secret,
	)
	t.Cleanup(func() {
		if c.process != nil {
			c.resume()
			c.process.Kill()
		}
		if t.Failed() {
			t.Logf("the log of core %s:\n%s", c.url, c.log.String())
		}
	})
	return c
}

func (c *coreServer) start(t *testing.T) {
	t.Helper()
	process, err := embedded.StartProcess(embedded.Command{
		Name: "core", Path: filepath.Join(c.binaries, "core"), Args: []string{"serve"}, Env: c.env,
		Output: func(line string) { fmt.Fprintln(&c.log, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	c.process = process
}

func (c *coreServer) awaitReady(t *testing.T) {
	t.Helper()
	asynctest.Eventually(t, "core is ready", func() bool { return isOK(t, c.opsURL+"/readyz") })
}

func (c *coreServer) kill() { c.process.Kill() }

// stop ends it as an operator does, with the time to finish its requests.
func (c *coreServer) stop(t *testing.T) {
	t.Helper()
	if err := c.process.Stop(syscall.SIGTERM, 30*time.Second); err != nil {
		t.Error(err)
	}
}

// statusFor is what it answers to a gateway with this secret that asks whether it is ready.
func (c *coreServer) statusFor(t *testing.T, secret string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/internal/ready", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Gateway-Secret", secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// pause stops it in its tracks, until resume.
func (c *coreServer) pause(t *testing.T) {
	t.Helper()
	if err := c.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func (c *coreServer) resume() { _ = c.process.Signal(syscall.SIGCONT) }

// urlsOf is what a gateway is told of cores.
func urlsOf(all []*coreServer) string {
	urls := make([]string, len(all))
	for n, c := range all {
		urls[n] = c.url
	}
	return strings.Join(urls, ",")
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

// unhurried are settings of gateways that never take a busy machine for a slow Redis, which is not what is tested here.
func unhurried(settings ...string) []string { return append(settings, "GATEWAY_LIMIT_BUDGET=2s") }

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

// since is the time from a moment on, or nothing if it never came.
func since(moment, end time.Time) time.Duration {
	if end.Before(moment) {
		return 0
	}
	return end.Sub(moment)
}
