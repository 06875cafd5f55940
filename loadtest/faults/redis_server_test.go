package faults_test

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/freeport"
)

// go-redis prints every failed dial, and here they fail on purpose.
func init() { logging.Disable() }

// redisServer is a real Redis of a test's own.
type redisServer struct {
	system.Process
	address string
	client  *redis.Client // not through any proxy
}

// startRedis starts one until the test ends, with additional environment variables. The one inside a Go program cannot be stopped or
// killed, so a program is needed.
func startRedis(t *testing.T, env ...string) *redisServer {
	t.Helper()
	r := &redisServer{address: freeport.Address(t)}
	_, port, _ := net.SplitHostPort(r.address)
	r.Prepare(t, embedded.Command{
		Path: system.FindProgram(t, "on Debian: apt-get install redis-server", "redis-server", "valkey-server"),
		Args: []string{"--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "", "--loglevel", "notice"},
		Env:  append(stack.Environ(), env...),
	})
	r.client = redis.NewClient(&redis.Options{Addr: r.address, Protocol: 2, DialTimeout: time.Second})
	t.Cleanup(func() { _ = r.client.Close() })
	r.Start(t)
	return r
}

func (r *redisServer) url() string { return "redis://" + r.address + "/0" }

// Start starts it, again after stop, and returns when it answers.
func (r *redisServer) Start(t *testing.T) {
	t.Helper()
	r.Process.Start(t)
	asynctest.Eventually(t, "Redis answers", func() bool { return r.client.Ping(t.Context()).Err() == nil })
}

// pause suspends it until resume: it accepts connections and never answers.
func (r *redisServer) pause(t *testing.T) {
	t.Helper()
	r.Signal(t, syscall.SIGSTOP)
}

func (r *redisServer) resume(t *testing.T) {
	t.Helper()
	r.Signal(t, syscall.SIGCONT)
}

// do runs one command on it.
func (r *redisServer) do(t *testing.T, command ...any) any {
	t.Helper()
	reply, err := r.client.Do(t.Context(), command...).Result()
	if err != nil {
		t.Fatalf("redis %v: %v", command, err)
	}
	return reply
}

// accepted is how many connections it has accepted since its start.
func (r *redisServer) accepted(t *testing.T) int {
	t.Helper()
	return r.statistic(t, "stats", "total_connections_received:")
}

// statistic is the number after a text of INFO; 0 without that text.
func (r *redisServer) statistic(t *testing.T, section, name string) (number int) {
	t.Helper()
	_, after, _ := strings.Cut(r.do(t, "INFO", section).(string), name)
	_, _ = fmt.Sscanf(after, "%d", &number)
	return number
}
