package e2e_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/asynctest"
)

const (
	oldSecret = "the secret that is to be replaced, 1"
	newSecret = "the secret that takes its place, 2 2"
)

// live is a stack of two cores and two gateways that follow files of settings.
type live struct {
	t                     *testing.T
	env                   stack.Env
	coreFile, gatewayFile string
}

func startLive(t *testing.T) *live {
	t.Helper()
	return startLiveOn(t, ownRedis(t).URL) // another limit would count for everyone on the same Redis
}

func startLiveOn(t *testing.T, redisURL string) *live {
	t.Helper()
	dir := t.TempDir()
	l := &live{t: t, coreFile: filepath.Join(dir, "core.env"), gatewayFile: filepath.Join(dir, "gateway.env")}
	var log asynctest.Buffer
	s, err := stack.Start(t.Context(), stack.Config{
		Data: t.TempDir(), Binaries: binaries, Listen: "127.0.0.1:0", Cores: 2, Gateways: 2, Ephemeral: true, Log: &log,
		RedisURL: redisURL,
		CoreEnv:  append([]string{"CORE_GATEWAY_SECRET=" + oldSecret, "CORE_ENV_FILE=" + l.coreFile}, oneAddress...),
		GatewayEnv: []string{
			"GATEWAY_CORE_SECRET=" + oldSecret, "GATEWAY_ENV_FILE=" + l.gatewayFile, "GATEWAY_LIMIT_BUDGET=2s",
		},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("the stack's log:\n" + log.String())
		}
		for _, hush := range []string{oldSecret, newSecret, oldPassword, newPassword} {
			if strings.Contains(log.String(), hush) {
				t.Error("the log tells a secret")
			}
		}
	})
	l.env = s.Env()
	if err := executeOn(t.Context(), l.env.DatabaseURL, "UPDATE api_keys SET limit_requests = 1000000 WHERE start = $1", l.env.TestKey[:12]); err != nil {
		t.Fatal(err)
	}
	return l
}

// write replaces a file of settings as careful people do, and tells nobody.
func (l *live) write(file string, lines ...string) {
	l.t.Helper()
	fresh := file + ".new"
	if err := os.WriteFile(fresh, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Rename(fresh, file); err != nil {
		l.t.Fatal(err)
	}
}

// metric is the sum of one over all processes of a service.
func (l *live) metric(service, name string) (sum float64) {
	l.t.Helper()
	for _, value := range l.metrics(service, name) {
		sum += value
	}
	return sum
}

// metrics are the values of one in both processes of a service.
func (l *live) metrics(service, name string) (values []float64) {
	l.t.Helper()
	line := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`)
	for _, process := range l.env.Processes {
		if process.OpsURL == "" || !strings.HasPrefix(process.Name, service) {
			continue
		}
		for _, match := range line.FindAllStringSubmatch(get(l.t, process.OpsURL+"/metrics", http.StatusOK), -1) {
			value, err := strconv.ParseFloat(match[1], 64)
			if err != nil {
				l.t.Fatal(err)
			}
			values = append(values, value)
		}
	}
	if len(values) != 2 {
		l.t.Fatalf("%d processes tell %s", len(values), name)
	}
	return values
}

// lets reports whether every core takes the secret for a gateway's, or none does.
func (l *live) lets(secret string) (all, none bool) {
	all, none = true, true
	for _, core := range l.env.CoreURLs {
		request, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, core+"/internal/ready", nil)
		if err != nil {
			l.t.Fatal(err)
		}
		request.Header.Set("X-Gateway-Secret", secret)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			l.t.Fatal(err)
		}
		_ = response.Body.Close()
		all, none = all && response.StatusCode == http.StatusNoContent, none && response.StatusCode == http.StatusUnauthorized
	}
	return all, none
}

// until waits for what holds and fails the test if it never does.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	eventually(t, func() error {
		if !holds() {
			return errors.New("not so: " + what)
		}
		return nil
	})
}

// The steps are those of deploy/README.md, "Changing settings while running".
func TestSharedSecretIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	l := startLive(t)
	clients := l.drive()
	clients.more(t, 200)

	l.write(l.coreFile, "CORE_GATEWAY_SECRET="+newSecret, "CORE_GATEWAY_SECRET_PREVIOUS="+oldSecret)
	until(t, "all cores take the new secret", func() bool { all, _ := l.lets(newSecret); return all })
	if all, _ := l.lets(oldSecret); !all {
		t.Fatal("the old secret is refused too early")
	}
	clients.more(t, 200)
	if l.metric("core", "intents_core_previous_secret_requests_total") == 0 {
		t.Error("nobody seems to use the previous secret, and all gateways do")
	}

	l.write(l.gatewayFile, "GATEWAY_CORE_SECRET="+newSecret)
	last := -1.0
	until(t, "no gateway uses the previous secret any more", func() bool {
		before := last
		last = l.metric("core", "intents_core_previous_secret_requests_total")
		clients.more(t, 100)
		return last == before
	})

	l.write(l.coreFile, "CORE_GATEWAY_SECRET="+newSecret)
	until(t, "no core takes the old secret", func() bool { _, none := l.lets(oldSecret); return none })
	clients.more(t, 300)
	clients.stop()
	t.Logf("%d requests, %d failed", clients.answered.Load(), len(clients.failures))
	if len(clients.failures) > 0 {
		t.Errorf("%d requests failed, the first with %s", len(clients.failures), clients.failures[0])
	}
}

// A file with a fault changes nothing, shows in the metrics, and is taken over once it is right; a signal spares the wait.
func TestSettingsFileOfGateways(t *testing.T) {
	t.Parallel()
	l := startLive(t)
	anyone := apiClient(t, "")
	anyone.base = l.env.GatewayURLs[0]
	// second is the status on a connection beside the one that anyone keeps.
	second := func() int {
		anyone.do(http.MethodGet, "/health", nil)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, anyone.base+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
		if err != nil { // a refused connection closes whether or not the request has come, so that its answer can be lost
			t.Log(err)
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}

	l.write(l.gatewayFile, "GATEWAY_MAX_CONNS_PER_IP=1")
	changed := time.Now()
	until(t, "connections are limited", func() bool { return second() == http.StatusServiceUnavailable })
	t.Logf("a limit counted %s after it was written", time.Since(changed).Round(10*time.Millisecond))
	if took := time.Since(changed); took > 2*time.Second {
		t.Errorf("a limit counted after %s", took)
	}

	l.write(l.gatewayFile, "GATEWAY_MAX_CONNS_PER_IP=many", "GATEWAY_CORE_SECRET=short", "GATEWAY_KEY_TLL=1m")
	until(t, "the fault shows", func() bool { return l.metric("gateway", "intents_gateway_config_reload_success") == 0 })
	until(t, "the limit is kept with a bad file", func() bool { return second() == http.StatusServiceUnavailable })
	if a := anyone.do(http.MethodGet, "/openapi.json", nil); a.Status != http.StatusOK {
		t.Errorf("with a bad file core is not reached: %d %s", a.Status, a.Body)
	}

	l.write(l.gatewayFile, "GATEWAY_MAX_CONNS_PER_IP=100", "GATEWAY_KEY_TTL=1m")
	for n := range l.env.GatewayURLs {
		if err := syscall.Kill(l.env.PID(stack.GatewayName(n+1)), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "it is right again", func() bool { return l.metric("gateway", "intents_gateway_config_reload_success") == 2 })
	until(t, "connections are let in", func() bool { return second() == http.StatusNoContent })
	if pending := l.metric("gateway", "intents_gateway_config_restart_pending"); pending != 2 {
		t.Errorf("%v settings wait for a restart, want one of each gateway", pending)
	}
	if refused := l.metric("core", "intents_core_config_reload_success"); refused != 2 {
		t.Errorf("cores have no fault in theirs, %v of 2 say so", refused)
	}
}
