package e2e_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/topology"
)

// The built services keep their limits in a Redis Cluster, and on a master behind Sentinels, with passwords and TLS: requests and sign-ins
// are limited over all gateways and cores, by Redis.
func TestRedisTopologies(t *testing.T) {
	journey(t)
	t.Parallel()
	certificate := must(topologytest.NewCertificate(t.TempDir()))(t)
	secure := topologytest.Security{Password: "correct-horse", SentinelPassword: "battery-staple", TLS: certificate}
	for mode, start := range map[topology.Mode]func(*testing.T) (url string){
		topology.Cluster:  func(t *testing.T) string { t.Helper(); return topologytest.StartCluster(t, 3, 0, secure).URL },
		topology.Sentinel: func(t *testing.T) string { t.Helper(); return topologytest.StartSentinels(t, 1, secure).URL },
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			trust := "SSL_CERT_DIR=" + filepath.Dir(certificate.Authority) // as the Helm chart sets it
			s, _ := startStack(t, stack.Config{
				Gateways: 2, Cores: 2, RedisURL: start(t),
				CoreEnv:    []string{trust, "CORE_REDIS_MODE=" + string(mode), "CORE_SIGN_IN_PER_ACCOUNT=5"},
				GatewayEnv: []string{trust, "GATEWAY_REDIS_MODE=" + string(mode)},
			})
			limitsWork(t, s)
		})
	}
}

func limitsWork(t *testing.T, s *stack.Stack) {
	t.Helper()
	gateways := s.Env().GatewayURLs
	owner := newPerson(t, gateways[0])
	for range 3 { // on several nodes
		limited(t, owner.newKey().Key, gateways)
	}
	wrong := map[string]any{"email": owner.email, "password": "wrong horse battery"}
	guesses := 0
	for status := http.StatusUnauthorized; status == http.StatusUnauthorized; guesses++ {
		status = rawClient(t, gateways[guesses%2], "").Do(http.MethodPost, "/auth/sign-in/email", wrong).Status
	}
	if guesses < 4 || guesses > 8 { // the owner's own sign-in was one of five, and one more is earned now and then
		t.Errorf("a password was guessed %d times", guesses)
	}
	for _, process := range s.Env().Processes {
		if process.OpsURL == "" {
			continue
		}
		metrics := system.ParseMetrics([]byte(system.Get(t, process.OpsURL+"/metrics")))
		for name, value := range metrics {
			if strings.Contains(name, `decision="fallback_`) && value > 0 {
				t.Errorf("%s decided without Redis: %s %g", process.Name, name, value)
			}
		}
		if metrics[`intents_check_passing{check="redis",optional="true"}`] != 1 {
			t.Errorf("%s misses its Redis", process.Name)
		}
	}
}
