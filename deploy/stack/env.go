package stack

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// notInherited are the settings by which the environment could make core or a gateway use the database of another installation.
var notInherited = []string{"CORE_ENV_FILE", "CORE_MIGRATE_DATABASE_URL", "CORE_READ_DATABASE_URL", "GATEWAY_ENV_FILE"}

// Environ is this process's environment without the settings that name the databases of another installation. The processes of a stack
// inherit it.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(notInherited, name)
	})
}

// Env has the addresses, keys and processes of a running stack.
type Env struct {
	GatewayURL        string
	GatewayURLs       []string
	CoreURL           string // of the first core
	CoreURLs          []string
	TestKey           string
	LiveKey           string
	AccountEmail      string
	AccountPassword   string
	DatabaseURL       string
	RedisURL          string
	GatewayMetricsURL string // of the first gateway
	CoreMetricsURL    string // of the first core
	// LocalChains are empty without local chains; they may still be starting until there is a process of the name Chains.
	LocalChains []LocalChain
	// PostgresSource and RedisSource describe where these come from.
	PostgresSource string
	RedisSource    string
	// Processes are the processes of the stack in the order of their start.
	Processes []Process
}

// Process is one running process.
type Process struct {
	Name string
	PID  int
	// OpsURL is the base URL of the operations listener (/readyz, /metrics); empty for Postgres and Redis.
	OpsURL string
}

// Env is the present state of the stack.
func (s *Stack) Env() Env {
	env := Env{
		GatewayURL:        s.gateways[0].url(),
		GatewayURLs:       urls(s.gateways),
		CoreURL:           s.cores[0].url(),
		CoreURLs:          urls(s.cores),
		TestKey:           s.account.TestKey,
		LiveKey:           s.account.LiveKey,
		AccountEmail:      s.account.Email,
		AccountPassword:   s.account.Password,
		DatabaseURL:       s.postgres.URL,
		RedisURL:          s.redis.URL,
		GatewayMetricsURL: s.gateways[0].opsURL() + "/metrics",
		CoreMetricsURL:    s.cores[0].opsURL() + "/metrics",
		LocalChains:       s.chains.list(),
		PostgresSource:    s.postgres.Source,
		RedisSource:       s.redis.Source,
	}
	for _, v := range s.allSupervisors() {
		pid, _ := v.state()
		process := Process{Name: v.name, PID: pid}
		if service, ours := v.server.(*service); ours {
			process.OpsURL = service.opsURL()
		}
		env.Processes = append(env.Processes, process)
	}
	return env
}

// PID is the id of the named process, 0 if there is none.
func (e Env) PID(name string) int { return e.Process(name).PID }

// Process is the named process, the zero value if there is none.
func (e Env) Process(name string) Process {
	for _, process := range e.Processes {
		if process.Name == name {
			return process
		}
	}
	return Process{}
}

// String is an environment file: NAME=value lines, which a shell can also source.
func (e Env) String() string {
	var text strings.Builder
	line := func(name, value string) {
		fmt.Fprintf(&text, "%s=%s\n", name, quote(value))
	}
	line("GATEWAY_URL", e.GatewayURL)
	line("GATEWAY_URLS", strings.Join(e.GatewayURLs, ","))
	line("CORE_URL", e.CoreURL)
	line("CORE_URLS", strings.Join(e.CoreURLs, ","))
	line("TEST_KEY", e.TestKey)
	line("LIVE_KEY", e.LiveKey)
	line("ACCOUNT_EMAIL", e.AccountEmail)
	line("ACCOUNT_PASSWORD", e.AccountPassword)
	line("DATABASE_URL", e.DatabaseURL)
	line("REDIS_URL", e.RedisURL)
	line("GATEWAY_METRICS_URL", e.GatewayMetricsURL)
	line("CORE_METRICS_URL", e.CoreMetricsURL)
	for _, chain := range e.LocalChains {
		line("CHAIN_"+chain.ID+"_RPC_URL", chain.RPCURL)
	}
	for _, process := range e.Processes {
		name := strings.ToUpper(strings.ReplaceAll(process.Name, "-", "_"))
		line(name+"_PID", fmt.Sprint(process.PID))
	}
	return text.String()
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@,?=%+-]*$`)

// quote quotes a value for a shell, if it needs quotes: some readers of environment files know none.
func quote(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
