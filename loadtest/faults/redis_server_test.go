package faults_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// go-redis prints every failed dial, and here they fail on purpose.
func init() { logging.Disable() }

// redisServer is a real Redis of a test's own, which it may do anything to.
type redisServer struct {
	address string
	client  *redis.Client // not through any proxy
	program string
	args    []string
	env     []string // nil: this program's own
	process *embedded.Process
	log     *asynctest.Buffer
}

// redisProgram finds the server. The one inside a Go program cannot be stopped in its tracks, killed or made a replica.
func redisProgram(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no redis-server or valkey-server on PATH")
	}
	t.Skip("no redis-server or valkey-server on PATH")
	return ""
}

// startRedis starts one until the test ends, that keeps nothing on disk unless the arguments say so.
func startRedis(t *testing.T, args ...string) *redisServer {
	t.Helper()
	return startRedisIn(t, nil, args...)
}

// startRedisIn is startRedis with an environment of its own.
func startRedisIn(t *testing.T, env []string, args ...string) *redisServer {
	t.Helper()
	port, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	r := &redisServer{
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), program: redisProgram(t), env: env, log: &asynctest.Buffer{},
		args: append([]string{
			"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", t.TempDir(), "--save", "", "--loglevel", "notice",
		}, args...),
	}
	r.client = redis.NewClient(&redis.Options{Addr: r.address, Protocol: 2, DialTimeout: time.Second})
	t.Cleanup(func() {
		_ = r.client.Close()
		r.kill()
		if t.Failed() {
			t.Logf("the log of the Redis at %s:\n%s", r.address, r.log.String())
		}
	})
	r.start(t)
	return r
}

// start starts it, again if need be, and returns when it answers.
func (r *redisServer) start(t *testing.T) {
	t.Helper()
	process, err := embedded.StartProcess(embedded.Command{
		Name: "redis", Path: r.program, Args: r.args, Env: r.env, Output: func(line string) { fmt.Fprintln(r.log, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.process = process
	asynctest.Eventually(t, "Redis answers", func() bool { return r.client.Ping(t.Context()).Err() == nil })
}

// stop ends it as an operator would, kill as a crash would.
func (r *redisServer) stop(t *testing.T) {
	t.Helper()
	if err := r.process.Stop(syscall.SIGTERM, 10*time.Second); err != nil {
		t.Fatal(err)
	}
}

func (r *redisServer) kill() {
	if r.process != nil {
		r.process.Kill()
	}
}

// pause stops it in its tracks, until resume.
func (r *redisServer) pause(t *testing.T) {
	t.Helper()
	if err := r.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func (r *redisServer) resume(t *testing.T) {
	t.Helper()
	if err := r.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
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
