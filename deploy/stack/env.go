package stack

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// foreign are the settings by which a shell could send core or a gateway to the database of another installation.
var foreign = []string{"CORE_ENV_FILE", "CORE_MIGRATE_DATABASE_URL", "CORE_READ_DATABASE_URL", "GATEWAY_ENV_FILE"}

// Environ is this process's environment without the settings that lead to the databases of another installation. It is what
// a stack's processes start from.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(foreign, name)
	})
}

// Env is what a client, a test or an operator needs to use a running stack.
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
	// PostgresSource and RedisSource say in words where these come from.
	PostgresSource string
	RedisSource    string
	// Processes are the stack's own, by name and in the order of their start.
	Processes []Process
}

// Process is one running process.
type Process struct {
	Name string
	PID  int
	// OpsURL is where the process answers operators, /readyz and /metrics among them; empty for Postgres and Redis.
	OpsURL string
}

// Env tells how to use the stack as it is now.
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
		PostgresSource:    s.postgres.Source,
		RedisSource:       s.redis.Source,
	}
	for _, m := range s.members {
		pid, _ := m.state()
		process := Process{Name: m.name, PID: pid}
		if service, ours := m.server.(*service); ours {
			process.OpsURL = service.opsURL()
		}
		env.Processes = append(env.Processes, process)
	}
	return env
}

// PID is the id of the named process; 0 when the stack runs none of that name.
func (e Env) PID(name string) int { return e.Process(name).PID }

// Process is the named process; the zero value when the stack runs none of that name.
func (e Env) Process(name string) Process {
	for _, process := range e.Processes {
		if process.Name == name {
			return process
		}
	}
	return Process{}
}

// String is one NAME=value line each, which a shell can source and any reader of environment files understands.
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
	for _, process := range e.Processes {
		name := strings.ToUpper(strings.ReplaceAll(process.Name, "-", "_"))
		line(name+"_PID", fmt.Sprint(process.PID))
	}
	return text.String()
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@,?=%+-]*$`)

// quote leaves a value that no shell would change as it is, so that readers without quoting understand it too.
func quote(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
