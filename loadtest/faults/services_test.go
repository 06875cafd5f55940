package faults_test

import (
	"cmp"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/embedded"
)

type (
	gateway    struct{ system.Process }
	coreServer struct{ system.Process }
)

// direct never uses a proxy that the environment names.
var direct = &http.Client{Transport: &http.Transport{}, Timeout: 15 * time.Second}

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
		shared.PrepareService(t, &fleet[n].Process, embedded.Command{Path: "gateway"}, func(listen, ops string) []string {
			return append([]string{
				"GATEWAY_LISTEN=" + listen,
				"GATEWAY_OPS_LISTEN=" + ops,
				"GATEWAY_CORE_URL=" + cmp.Or(config.core, shared.Stack.Env().CoreURL),
				"GATEWAY_CORE_SECRET=" + secret,
				"GATEWAY_REDIS_URL=" + config.redis,
				"GATEWAY_ACCESS_LOG=false",
				"GATEWAY_DRAIN_DELAY=0s",
			}, config.env...)
		})
		if config.binaries != "" {
			fleet[n].Command.Path = filepath.Join(config.binaries, "gateway")
		}
		fleet[n].Start(t)
	}
	for _, g := range fleet {
		g.AwaitReady(t)
	}
	return fleet
}

// patient are settings of gateways that never mistake a busy machine for a slow Redis.
func patient(settings ...string) []string { return append(settings, "GATEWAY_LIMIT_BUDGET=5s") }

// startCores starts so many on a database until the test ends, and returns when they are ready.
func startCores(t *testing.T, db *database, count int, env ...string) []*coreServer {
	t.Helper()
	return startCoresOf(t, shared.Binaries, db, count, env...)
}

func startCoresOf(t *testing.T, binaries string, db *database, count int, env ...string) []*coreServer {
	t.Helper()
	all := make([]*coreServer, count)
	for n := range all {
		all[n] = &coreServer{}
		shared.PrepareService(t, &all[n].Process, embedded.Command{Path: "core", Args: []string{"serve"}}, func(listen, ops string) []string {
			return append([]string{
				"CORE_LISTEN=" + listen,
				"CORE_OPS_LISTEN=" + ops,
				"CORE_DATABASE_URL=" + db.url,
				"CORE_DATABASE_CONNECTIONS=6", // several tests' cores share one Postgres
				"CORE_REDIS_URL=" + shared.Stack.Env().RedisURL,
				"CORE_GATEWAY_SECRET=" + secret,
			}, env...)
		})
		all[n].Command.Path = filepath.Join(binaries, "core")
		all[n].Start(t)
	}
	for _, c := range all {
		c.AwaitReady(t)
	}
	return all
}

// startServices starts a core with these settings on the database, and a gateway with a Redis of its own before it.
func startServices(t *testing.T, db *database, coreEnv ...string) (*coreServer, []*gateway) {
	t.Helper()
	cores := startCores(t, db, 1, coreEnv...)
	return cores[0], startGateways(t, 1, fleetConfig{redis: startRedis(t).url(), core: cores[0].URL, env: patient()})
}

// urlsOf is GATEWAY_CORE_URL for these cores.
func urlsOf(all []*coreServer) string {
	urls := make([]string, len(all))
	for n, c := range all {
		urls[n] = c.URL
	}
	return strings.Join(urls, ",")
}

// coresUp is how many cores each gateway of the fleet sends requests to, at the least.
func coresUp(t *testing.T, fleet []*gateway) int {
	t.Helper()
	least := -1
	for _, g := range fleet {
		if up := int(g.Metrics(t).Sum("intents_gateway_core_up{")); least < 0 || up < least {
			least = up
		}
	}
	return least
}
