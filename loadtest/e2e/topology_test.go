package e2e_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/topology"
)

// The built services keep their limits in a Redis Cluster, and on a master behind Sentinels, with passwords and TLS; when a
// master is killed nobody gets an error, and its replica goes on exactly.
func TestRedisTopologies(t *testing.T) {
	t.Parallel()
	certificate, err := topologytest.NewCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secure := topologytest.Security{Password: "correct-horse", SentinelPassword: "battery-staple", TLS: certificate}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := topologytest.StartCluster(t, 3, 3, secure)
		s := stackOn(t, topology.Cluster, c.URL, certificate)
		limitsWork(t, s)
		losesMaster(t, s, c.Masters[0].Kill, func() bool { return c.Replicas[0].Info("replication", "role") == "master" })
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		all := topologytest.StartSentinels(t, 1, secure)
		s := stackOn(t, topology.Sentinel, all.URL, certificate)
		limitsWork(t, s)
		losesMaster(t, s, all.Master.Kill, func() bool { return all.Named() == all.Replicas[0].Address })
	})
}

// stackOn is two gateways and two cores on such a Redis.
func stackOn(t *testing.T, mode topology.Mode, url string, certificate *topologytest.Certificate) *stack.Stack {
	t.Helper()
	var log asynctest.Buffer
	trust := "SSL_CERT_DIR=" + filepath.Dir(certificate.Authority) // as the Helm chart sets it
	s, err := stack.Start(t.Context(), stack.Config{
		Mail: receiveMail,
		Data: t.TempDir(), Binaries: binaries, Listen: "127.0.0.1:0", Gateways: 2, Cores: 2, Ephemeral: true, Log: &log,
		CoreEnv:    append([]string{trust, "CORE_REDIS_MODE=" + string(mode), "CORE_SIGN_IN_PER_ACCOUNT=5"}, oneAddress...),
		GatewayEnv: []string{trust, "GATEWAY_REDIS_MODE=" + string(mode), "GATEWAY_LIMIT_BUDGET=1s"},
		RedisURL:   url,
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
	})
	return s
}

// limitsWork wants that requests and sign-ins are limited over all gateways and cores, by Redis.
func limitsWork(t *testing.T, s *stack.Stack) {
	t.Helper()
	owner := newPerson(t, s.Env().GatewayURL)
	for range 4 {
		limited(t, s, owner.newKey(t).Key)
	}
	wrong := map[string]any{"email": owner.email, "password": "wrong horse battery"}
	for n := range 8 { // four of five tries: the owner's own leaves the bucket one short until it has refilled
		c := browserClient(t)
		c.base = s.Env().GatewayURLs[n%2]
		want := http.StatusUnauthorized
		if n >= 4 {
			want = http.StatusTooManyRequests
		}
		if a := c.do(http.MethodPost, "/auth/sign-in/email", wrong); a.Status != want {
			t.Errorf("wrong password %d: %d %s, want %d", n+1, a.Status, a.Body, want)
		}
	}
	for _, process := range s.Env().Processes {
		if process.OpsURL == "" {
			continue
		}
		metrics := get(t, process.OpsURL+"/metrics", http.StatusOK)
		for line := range strings.SplitSeq(metrics, "\n") {
			if strings.Contains(line, `decision="fallback_`) && !strings.HasSuffix(line, " 0") {
				t.Errorf("%s decided without Redis: %s", process.Name, line)
			}
		}
		if !strings.Contains(metrics, `intents_check_passing{check="redis",optional="true"} 1`) {
			t.Errorf("%s misses its Redis", process.Name)
		}
	}
}

// limited wants that a fresh key passes 50 times over both gateways, and as often more as its bucket has refilled, and the
// next time is told to wait.
func limited(t *testing.T, s *stack.Stack, key string) {
	t.Helper()
	began, passed := time.Now(), 0
	for n := 0; ; n++ {
		c := apiClient(t, key)
		c.base = s.Env().GatewayURLs[n%2]
		a := c.do(http.MethodGet, "/v2/chains", nil)
		if a.Status == http.StatusTooManyRequests {
			if a.Header.Get("Retry-After") == "" {
				t.Errorf("told nothing of when: %v", a.Header)
			}
			break
		}
		if a.Status != http.StatusOK {
			t.Fatalf("request %d: %d %s", n+1, a.Status, a.Body)
		}
		passed++
	}
	if most := 50 + int(time.Since(began)/(1200*time.Millisecond)) + 1; passed < 50 || passed > most {
		t.Errorf("%d passed, want 50 to %d", passed, most)
	}
}

// losesMaster kills a master, and wants that nobody gets an error until another has taken its place, and all is exact then.
func losesMaster(t *testing.T, s *stack.Stack, kill func(), replaced func() bool) {
	t.Helper()
	owner := newPerson(t, s.Env().GatewayURL)
	keys := make([]string, 24) // some on each node
	for i := range keys {
		keys[i] = owner.newKey(t).Key
	}
	kill()
	died, asked := time.Now(), 0
	ask := func() {
		for i, key := range keys {
			c := apiClient(t, key)
			c.base = s.Env().GatewayURLs[(asked+i)%2]
			if a := c.do(http.MethodGet, "/v2/chains", nil); a.Status != http.StatusOK && a.Status != http.StatusTooManyRequests {
				t.Errorf("without a master: %d %s", a.Status, a.Body)
			}
		}
		asked++
	}
	asynctest.Eventually(t, "the replica has taken over", func() bool { ask(); return replaced() })
	promoted := time.Now()
	asynctest.Eventually(t, "Redis decides on all keys at all gateways", func() bool {
		before := withoutRedis(t, s)
		ask()
		ask()
		away := slices.ContainsFunc(before, func(line string) bool {
			return strings.HasPrefix(line, "intents_gateway_limit_degraded ") && line != "intents_gateway_limit_degraded 0"
		})
		return !away && slices.Equal(before, withoutRedis(t, s))
	})
	t.Logf("another master after %s, used %s later; %d requests, none with an error", promoted.Sub(died), time.Since(promoted), asked*len(keys))
	for range 4 {
		limited(t, s, owner.newKey(t).Key)
	}
}

// withoutRedis are the lines of all gateways' metrics that tell of decisions without Redis.
func withoutRedis(t *testing.T, s *stack.Stack) (lines []string) {
	t.Helper()
	for n := range s.Env().GatewayURLs {
		for line := range strings.SplitSeq(get(t, s.Env().Process(stack.GatewayName(n+1)).OpsURL+"/metrics", http.StatusOK), "\n") {
			if strings.HasPrefix(line, "intents_gateway_limit_degraded ") || strings.Contains(line, `decision="fallback_`) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}
