package main_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	gateway "intents.internal/gateway"
	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/asynctest"
	"intents.internal/pkg/embedded"
	"intents.internal/pkg/network"
	"intents.internal/pkg/tracing/tracingtest"
	"intents.internal/pkg/wire"
)

// program is a built gateway that runs and follows a file of settings.
type program struct {
	t         *testing.T
	core      *coretest.Core
	redis     *embedded.Redis
	collector *tracingtest.Collector
	key       string
	base      string // where clients are served
	ops       string
	file      string
	process   *os.Process
	said      asynctest.Buffer
	heardTo   int // how much of it was asked for
}

// heard tells whether the process has said this since the last time that it was asked for.
func (p *program) heard(text string) bool {
	said := p.said.String()
	fresh := said[p.heardTo:]
	p.heardTo = len(said)
	return strings.Contains(fresh, text)
}

func startProgram(t *testing.T) *program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	core := coretest.Start(t, nil)
	limits, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limits.Stop() })
	listen, ops := freeAddress(t), freeAddress(t)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Limit: wire.KeyLimit{Requests: 100_000, PeriodSeconds: 60}})
	p := &program{
		t: t, core: core, redis: limits, collector: tracingtest.Start(t, nil), key: key.Reveal(),
		base: "http://" + listen, ops: "http://" + ops, file: filepath.Join(t.TempDir(), "gateway.env"),
	}
	run := exec.CommandContext(context.WithoutCancel(t.Context()), path)
	run.Env = []string{
		"GATEWAY_ENV_FILE=" + p.file, "GATEWAY_LISTEN=" + listen, "GATEWAY_OPS_LISTEN=" + ops, "GATEWAY_CORE_URL=" + core.URL.String(),
		"GATEWAY_CORE_SECRET=" + coretest.Secret.Reveal(), "GATEWAY_REDIS_URL=" + limits.URL, "GATEWAY_DRAIN_DELAY=0s",
		"GATEWAY_ACCESS_LOG=false",
		"GATEWAY_LIMIT_BUDGET=1s", // a busy machine must not look like a slow Redis
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + p.collector.URL, "OTEL_TRACES_SAMPLER=parentbased_always_on",
	}
	run.Stdout, run.Stderr = &p.said, &p.said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	p.process = run.Process
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		if err := run.Wait(); err != nil {
			t.Errorf("the gateway ended with %v\n%s", err, p.said.String())
		}
	})
	asynctest.Eventually(t, "it serves", func() bool { return p.get("/v2/tokens", p.key) == http.StatusOK })
	return p
}

// set replaces the file and has it read at once.
func (p *program) set(lines ...string) {
	p.t.Helper()
	text := strings.ReplaceAll(strings.Join(lines, "\n"), "$REDIS_AS_OTHER", strings.Replace(p.redis.URL, "//", "//other:pass%20word@", 1))
	if err := os.WriteFile(p.file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := p.process.Signal(syscall.SIGHUP); err != nil {
		p.t.Fatal(err)
	}
}

// get makes a request on a connection of its own.
func (p *program) get(path, key string, headers ...string) (status int) {
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Close = true
	if key != "" {
		request.Header.Set("X-Api-Key", key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// onRedis runs a command as an operator does.
func (p *program) onRedis(command ...any) (reply string) {
	p.t.Helper()
	options, err := redis.ParseURL(p.redis.URL)
	if err != nil {
		p.t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	got, err := client.Do(p.t.Context(), command...).Result()
	if err != nil {
		p.t.Fatalf("%v: %v", command, err)
	}
	return fmt.Sprint(got)
}

// enter has a client open a connection and keep it.
func (p *program) enter() {
	p.t.Helper()
	client := &http.Transport{}
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+"/health", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := client.RoundTrip(request)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = response.Body.Close()
	p.t.Cleanup(client.CloseIdleConnections)
}

// lastClient is whom core was told of last.
func (p *program) lastClient() string {
	all := p.core.Requests()
	return all[len(all)-1].Header.Get("X-Forwarded-For")
}

// each setting that bears the tag reload, a value that it is changed to, and what the gateway does by that value alone.
var changes = []struct {
	variable, value string
	before          func(*program)
	holds           func(*program) bool
}{
	{
		variable: "GATEWAY_REDIS_URL", value: "$REDIS_AS_OTHER",
		before: func(p *program) { p.onRedis("ACL", "SETUSER", "other", "on", ">pass word", "~*", "&*", "+@all") },
		holds: func(p *program) bool {
			p.onRedis("CLIENT", "KILL", "TYPE", "normal")
			p.get("/v2/tokens", p.key)
			return strings.Contains(p.onRedis("CLIENT", "LIST"), " user=other ")
		},
	},
	{
		variable: "OTEL_EXPORTER_OTLP_HEADERS", value: "authorization=other",
		holds: func(p *program) bool {
			p.get("/v2/tokens", p.key)
			_, headers := p.collector.Exports()
			return headers.Get("Authorization") == "other"
		},
	},
	{
		variable: "GATEWAY_CORE_SECRET", value: "another secret of thirty-two characters",
		before: func(p *program) { p.core.SetSecret("another secret of thirty-two characters") },
		holds:  func(p *program) bool { return p.get("/v2/tokens", p.key) == http.StatusOK },
	},
	{
		variable: "GATEWAY_ACCESS_LOG", value: "true",
		before: func(p *program) { p.core.SetSecret(coretest.Secret) },
		holds: func(p *program) bool {
			for range 400 { // as many lines as leave the process at once
				p.get("/v2/tokens", "")
			}
			return p.heard(`"msg":"request"`)
		},
	},
	{
		variable: "GATEWAY_TRUSTED_PROXIES", value: "127.0.0.0/8",
		holds: func(p *program) bool {
			return p.get("/v2/tokens", p.key, "X-Forwarded-For", "198.51.100.7") == http.StatusOK && p.lastClient() == "198.51.100.7"
		},
	},
	{
		variable: "GATEWAY_MAX_CONNS", value: "1",
		before: (*program).enter,
		holds:  func(p *program) bool { return p.get("/health", "") == http.StatusServiceUnavailable },
	},
	{
		variable: "GATEWAY_MAX_CONNS_PER_IP", value: "1",
		holds: func(p *program) bool { return p.get("/health", "") == http.StatusServiceUnavailable },
	},
	{
		variable: "GATEWAY_LIMIT_FALLBACK", value: "closed",
		before: func(p *program) { _ = p.redis.Stop() },
		holds: func(p *program) bool {
			status, _ := get(p.t, p.ops+"/readyz", "")
			return p.get("/v2/tokens", p.key) == http.StatusServiceUnavailable && status == http.StatusServiceUnavailable
		},
	},
}

// A running gateway works by every setting that says so, from the signal on, and by the one before when it is taken back.
func TestSettingsChangeWhileRunning(t *testing.T) {
	t.Parallel()
	p := startProgram(t)
	for _, c := range changes {
		if c.variable == "GATEWAY_REDIS_URL" && p.redis.InProcess() {
			if os.Getenv("CI") == "true" {
				t.Fatal("no redis-server or valkey-server on PATH")
			}
			t.Log("no redis-server on PATH: that its user and password change is not tried")
			continue
		}
		if c.before != nil {
			c.before(p)
		}
		if c.holds(p) {
			t.Errorf("%s: what it is to change is so already", c.variable)
		}
		p.set(c.variable + "=" + c.value)
		asynctest.Eventually(t, c.variable+" counts", func() bool { return c.holds(p) })
		p.set("# nothing")
		asynctest.Eventually(t, c.variable+" counts no more", func() bool { return !c.holds(p) })
	}
}

// The tag is on those settings and no others, so the reference in deploy/README.md tells the truth.
func TestWhatChangesWhileRunningSaysSo(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for _, c := range changes {
		tried[c.variable] = true
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[gateway.Config]()) {
		variable, tagged := field.Tag.Get("env"), field.Tag.Get("reload") != ""
		if tagged != tried[variable] {
			t.Errorf("%s: it says that it changes while the gateway runs: %t; that is tried: %t", variable, tagged, tried[variable])
		}
	}
}
