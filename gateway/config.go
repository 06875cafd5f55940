package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"intents.internal/gateway/cores"
	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/topology"
	"intents.internal/pkg/wire"
)

// Config is everything an operator can set, by environment variables and in the file that EnvFile names. The gateway reads them
// when it starts. Durations are written like 250ms or 1m.
type Config struct {
	// EnvFile is a file of settings, one NAME=value a line, that override the environment's. Default none.
	EnvFile string `env:"GATEWAY_ENV_FILE"`
	// Listen is where clients are served, host:port. Default 127.0.0.1:8080.
	Listen string `env:"GATEWAY_LISTEN" envDefault:"127.0.0.1:8080"`
	// OpsListen is where operators find /metrics, /livez, /readyz and /debug/pprof, host:port. Default 127.0.0.1:9080;
	// keep it from the public.
	OpsListen string `env:"GATEWAY_OPS_LISTEN" envDefault:"127.0.0.1:9080"`

	// CoreURLs are the base URLs of the cores, http or https, without a path, comma separated: 1 to 64, which use one
	// database. A name stands for as many cores as it has addresses, 64 in all; it is resolved every two seconds, so cores may
	// come and go. Of IPv4 and IPv6 addresses IPv4 ones are used. Requests go to the core with the fewest under way; one that
	// does not answer is set aside until it does. Default http://127.0.0.1:8081.
	CoreURLs []string `env:"GATEWAY_CORE_URL" envDefault:"http://127.0.0.1:8081"`
	// CoreSecret is the secret shared with core, its CORE_GATEWAY_SECRET. At least 32 characters; no default.
	CoreSecret telemetry.Secret `env:"GATEWAY_CORE_SECRET"`
	// CoreTimeout bounds an exchange with core, a second attempt included, and each wait for more of a long answer. Default
	// 10s; 100ms to 5m.
	CoreTimeout time.Duration `env:"GATEWAY_CORE_TIMEOUT" envDefault:"10s"`
	// CoreMaxConns bounds the connections to each core, of each kind: those for requests with a key, for long lists, for
	// requests without a key, and for verdicts. Lists that are so long that they hold one until the client has read them, over
	// 512 KiB or of unknown length, may have three quarters of one core's. One account may have one in 24 of these, and a
	// quarter as many lists being made for it. Default 512; at least 1.
	CoreMaxConns int `env:"GATEWAY_CORE_MAX_CONNS" envDefault:"512"`
	// CoreSilence is how long all cores may leave everything unanswered before /health says 503. Default 5s; at least 1s.
	CoreSilence time.Duration `env:"GATEWAY_CORE_SILENCE" envDefault:"5s"`
	// ChainsRefresh is how often the table of chain environments is asked for. Default 5s; at least 100ms.
	ChainsRefresh time.Duration `env:"GATEWAY_CHAINS_REFRESH" envDefault:"5s"`

	// RedisMode is which Redis there is: single (one server), cluster (a Redis Cluster) or sentinel (a master that Sentinels
	// watch over). Default single.
	RedisMode topology.Mode `env:"GATEWAY_REDIS_MODE" envDefault:"single"`
	// RedisURL is where the rate limits are kept, shared by all replicas: redis://, rediss:// or unix://. For a cluster
	// redis://node1:6379?addr=node2:6379, for sentinels redis://sentinel1:26379/0?addr=sentinel2:26379&master_name=mymaster,
	// with as many addr as there are. Default redis://127.0.0.1:6379/0.
	RedisURL telemetry.Secret `env:"GATEWAY_REDIS_URL" envDefault:"redis://127.0.0.1:6379/0"`
	// LimitBudget is how long one call to Redis may take, for all the requests that share it. Default 50ms; 1ms to 5s.
	LimitBudget time.Duration `env:"GATEWAY_LIMIT_BUDGET" envDefault:"50ms"`
	// LimitFallback is what decides while Redis does not answer: local (a bucket per key and replica), open (everything
	// passes) or closed (503). Default local.
	LimitFallback limit.Fallback `env:"GATEWAY_LIMIT_FALLBACK" envDefault:"local"`
	// LimitMemory bounds the keys whose buckets are copied here, about 300 bytes each: for refusals that ask nobody, and
	// for going on where Redis does not answer. Default 100000; at least 1.
	LimitMemory int `env:"GATEWAY_LIMIT_MEMORY" envDefault:"100000"`

	// KeyCache bounds the key verdicts held, about 350 bytes each. Default 1000000; at least 1.
	KeyCache int `env:"GATEWAY_KEY_CACHE" envDefault:"1000000"`
	// KeyTTL is how long a verdict is held at most; changes are told by core within a second in any case. Default 5m; at
	// least 1s.
	KeyTTL time.Duration `env:"GATEWAY_KEY_TTL" envDefault:"5m"`
	// UnknownKeyTTL is how long the refusal of a key that does not exist or is not usable is cached; a change of the key ends
	// it within a second in any case. Default 10s; at least 100ms.
	UnknownKeyTTL time.Duration `env:"GATEWAY_UNKNOWN_KEY_TTL" envDefault:"10s"`
	// KeyLookUpTimeout bounds a look-up at core, and the wait for core's key changes before a key is refused as unknown.
	// Default 800ms; 10ms to 1s, since an older answer proves nothing.
	KeyLookUpTimeout time.Duration `env:"GATEWAY_KEY_LOOKUP_TIMEOUT" envDefault:"800ms"`
	// KeyLookUps bounds the look-ups under way at once. Default 64; at least 1.
	KeyLookUps int `env:"GATEWAY_KEY_LOOKUPS" envDefault:"64"`

	// UsageInterval is how often it is counted up, and told to core, what became of each key's requests. Default 5s; 1s
	// to 1m. Core writes one row for each key in use, gateway and interval.
	UsageInterval time.Duration `env:"GATEWAY_USAGE_INTERVAL" envDefault:"5s"`
	// UsageBacklog bounds the counts that wait while core does not answer, one for each key and minute, about 200 bytes
	// each. The oldest are dropped beyond it. Default 200000; at least 1000.
	UsageBacklog int `env:"GATEWAY_USAGE_BACKLOG" envDefault:"200000"`

	// ReadTimeout is how long a request may take to arrive, headers and body together. A connection that has sent nothing
	// yet is closed after it as well. Default 10s; at least 100ms.
	ReadTimeout time.Duration `env:"GATEWAY_READ_TIMEOUT" envDefault:"10s"`
	// WriteTimeout is how long a client may take to read an answer. Default 30s; at least 100ms.
	WriteTimeout time.Duration `env:"GATEWAY_WRITE_TIMEOUT" envDefault:"30s"`
	// StreamTimeout is the same for lists and pages, which may be long. Default 10m; at least 100ms.
	StreamTimeout time.Duration `env:"GATEWAY_STREAM_TIMEOUT" envDefault:"10m"`
	// StreamRate is how many bytes a second of these a client must have read, on average, WriteTimeout ago. Default 65536;
	// 0 for no such bound.
	StreamRate int `env:"GATEWAY_STREAM_RATE" envDefault:"65536"`
	// IdleTimeout is how long a client's connection may wait for its next request. Default 60s; at least 1s.
	IdleTimeout time.Duration `env:"GATEWAY_IDLE_TIMEOUT" envDefault:"60s"`
	// MaxConns bounds the client connections served at once; more get 503 and are closed. Where it is over three quarters of
	// the files that the process may open (ulimit -n), it is that, and MaxConnsPerIP shrinks with it. Default 65536; at
	// least 1.
	MaxConns int `env:"GATEWAY_MAX_CONNS" envDefault:"65536"`
	// MaxConnsPerIP bounds those of one IPv4 address or IPv6 /64; behind a proxy all have the proxy's. Default 16384; 0 for
	// no bound.
	MaxConnsPerIP int `env:"GATEWAY_MAX_CONNS_PER_IP" envDefault:"16384"`
	// MaxHeaderBytes bounds a request's line and headers. Default 8192; 1024 to 1048576. Each connection in use holds
	// this much.
	MaxHeaderBytes int `env:"GATEWAY_MAX_HEADER_BYTES" envDefault:"8192"`
	// MaxBodyBytes bounds a request's body on every route; POST /v2/transfers has its own bound of 16384 besides. Default
	// 65536; at least 16384.
	MaxBodyBytes int `env:"GATEWAY_MAX_BODY_BYTES" envDefault:"65536"`
	// TrustedProxies are the networks (CIDR, comma separated) whose X-Forwarded-For and X-Forwarded-Proto are believed.
	// Default none.
	TrustedProxies []netip.Prefix `env:"GATEWAY_TRUSTED_PROXIES"`

	// AccessLog writes one line per request to standard output. While nobody reads that, lines beyond 2 MiB are dropped,
	// counted (`intents_gateway_access_log_dropped_total`) and reported in a later line. Default true.
	AccessLog bool `env:"GATEWAY_ACCESS_LOG" envDefault:"true"`
	// TracesEndpoint is the base URL of a collector of OpenTelemetry traces (OTLP over HTTP, which goes to /v1/traces below
	// it), such as http://127.0.0.1:4318. Default none; without it no traces are made.
	TracesEndpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	// TracesHeaders are headers of every export to the collector, such as its credentials: name=value, comma separated and
	// percent-encoded. Default none.
	TracesHeaders telemetry.Secret `env:"OTEL_EXPORTER_OTLP_HEADERS"`
	// TracesSampler says which traces are recorded: parentbased_traceidratio (some of the clients'), parentbased_always_on or
	// parentbased_always_off. Default parentbased_traceidratio.
	TracesSampler string `env:"OTEL_TRACES_SAMPLER" envDefault:"parentbased_traceidratio"`
	// TracesSamplerArg is the share of traces that parentbased_traceidratio records, 0 to 1. Default 0.1.
	TracesSamplerArg float64 `env:"OTEL_TRACES_SAMPLER_ARG" envDefault:"0.1"`
	// TracesTrustClients believes the sampled flag of a client's traceparent, by which clients could have everything recorded.
	// Without it the sampler decides on a client's trace as on any other, and keeps its id. Default false.
	TracesTrustClients bool `env:"GATEWAY_TRACES_TRUST_CLIENTS" envDefault:"false"`
	// TracesServiceName is what traces call this service. Default none; without it that is the service.name in
	// TracesResource, else intents-gateway.
	TracesServiceName string `env:"OTEL_SERVICE_NAME"`
	// TracesResource is what else traces tell of this process: name=value, comma separated and percent-encoded. Default none.
	TracesResource string `env:"OTEL_RESOURCE_ATTRIBUTES"`

	// DrainDelay is how long the gateway still takes connections after TERM, so that whoever balances load sees /readyz
	// fail first. Default 1s; at least 0.
	DrainDelay time.Duration `env:"GATEWAY_DRAIN_DELAY" envDefault:"1s"`
	// DrainTimeout bounds the wait for requests under way after that. Default 30s; at least 1s.
	DrainTimeout time.Duration `env:"GATEWAY_DRAIN_TIMEOUT" envDefault:"30s"`
	// TimerSlack is how late Linux may fire the gateway's timers (timer slack, prctl(2)), up to 10ms. With 1ms a gateway that has
	// one processor saves more than a tenth of its time under full load, because the Go runtime's monitor wakes less often. The
	// gateway then executes itself once when it starts, under the same process id. 0s keeps the kernel's default of 50 µs.
	// Default 0s.
	TimerSlack time.Duration `env:"GATEWAY_TIMER_SLACK" envDefault:"0s"`
}

// ParseConfig reads the variables over the defaults and reports at once all that cannot be read or is out of bounds.
func ParseConfig(environment map[string]string) (Config, error) {
	config, err := env.ParseAsWithOptions[Config](env.Options{Environment: environment})
	unread := unreadable(err)
	for _, f := range config.faults() {
		if !slices.ContainsFunc(unread, func(u fault) bool { return u.variable == f.variable }) {
			unread = append(unread, f)
		}
	}
	return config, join(unread)
}

// fault is what is wrong with one variable.
type fault struct{ variable, text string }

func join(faults []fault) error {
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = fmt.Errorf("%s %s", f.variable, f.text)
	}
	return errors.Join(errs...)
}

// unreadable names the variables that the parser, which speaks of fields, could not read.
func unreadable(err error) []fault {
	var faults []fault
	var all env.AggregateError
	if !errors.As(err, &all) {
		return nil
	}
	for _, err := range all.Errors {
		var bad env.ParseError
		if !errors.As(err, &bad) {
			faults = append(faults, fault{"environment", err.Error()})
			continue
		}
		field, _ := reflect.TypeFor[Config]().FieldByName(bad.Name)
		faults = append(faults, fault{field.Tag.Get("env"), "cannot be read: " + bad.Err.Error()})
	}
	return faults
}

// Validate reports every fault at once.
func (c Config) Validate() error { return join(c.faults()) }

func (c Config) faults() []fault {
	var faults []fault
	add := func(name, format string, args ...any) {
		faults = append(faults, fault{name, fmt.Sprintf(format, args...)})
	}
	address := func(name, value string) {
		if _, _, err := net.SplitHostPort(value); err != nil {
			add(name, "must be host:port, not %q", value)
		}
	}
	duration := func(name string, value, least, most time.Duration) {
		if value < least || most > 0 && value > most {
			add(name, "must be %s, not %s", span(least, most), value)
		}
	}
	number := func(name string, value, least int) {
		if value < least {
			add(name, "must be at least %d, not %d", least, value)
		}
	}

	address("GATEWAY_LISTEN", c.Listen)
	address("GATEWAY_OPS_LISTEN", c.OpsListen)
	if _, err := c.cores(); err != nil {
		add("GATEWAY_CORE_URL", "%v", err)
	}
	if len(c.CoreSecret) < 32 {
		add("GATEWAY_CORE_SECRET", "must have at least 32 characters")
	}
	if err := topology.Validate(c.RedisMode, c.RedisURL.Reveal()); err != nil {
		add("GATEWAY_REDIS_URL", "%v", err)
	}

	duration("GATEWAY_CORE_TIMEOUT", c.CoreTimeout, 100*time.Millisecond, 5*time.Minute)
	duration("GATEWAY_CORE_SILENCE", c.CoreSilence, time.Second, 0)
	duration("GATEWAY_CHAINS_REFRESH", c.ChainsRefresh, 100*time.Millisecond, 0)
	duration("GATEWAY_LIMIT_BUDGET", c.LimitBudget, time.Millisecond, 5*time.Second)
	duration("GATEWAY_KEY_TTL", c.KeyTTL, time.Second, 0)
	duration("GATEWAY_UNKNOWN_KEY_TTL", c.UnknownKeyTTL, 100*time.Millisecond, 0)
	duration("GATEWAY_KEY_LOOKUP_TIMEOUT", c.KeyLookUpTimeout, 10*time.Millisecond, keys.MaxStaleness)
	duration("GATEWAY_USAGE_INTERVAL", c.UsageInterval, time.Second, time.Minute)
	duration("GATEWAY_READ_TIMEOUT", c.ReadTimeout, 100*time.Millisecond, 0)
	duration("GATEWAY_WRITE_TIMEOUT", c.WriteTimeout, 100*time.Millisecond, 0)
	duration("GATEWAY_STREAM_TIMEOUT", c.StreamTimeout, 100*time.Millisecond, 0)
	duration("GATEWAY_IDLE_TIMEOUT", c.IdleTimeout, time.Second, 0)
	duration("GATEWAY_DRAIN_DELAY", c.DrainDelay, 0, 0)
	duration("GATEWAY_DRAIN_TIMEOUT", c.DrainTimeout, time.Second, 0)
	duration("GATEWAY_TIMER_SLACK", c.TimerSlack, 0, 10*time.Millisecond)

	for _, f := range c.tracing().Faults() {
		add(f.Variable, "%s", f.Text)
	}

	number("GATEWAY_CORE_MAX_CONNS", c.CoreMaxConns, 1)
	number("GATEWAY_LIMIT_MEMORY", c.LimitMemory, 1)
	number("GATEWAY_KEY_CACHE", c.KeyCache, 1)
	number("GATEWAY_KEY_LOOKUPS", c.KeyLookUps, 1)
	number("GATEWAY_USAGE_BACKLOG", c.UsageBacklog, wire.MaxUsageRows)
	number("GATEWAY_STREAM_RATE", c.StreamRate, 0)
	number("GATEWAY_MAX_CONNS", c.MaxConns, 1)
	number("GATEWAY_MAX_CONNS_PER_IP", c.MaxConnsPerIP, 0)
	number("GATEWAY_MAX_HEADER_BYTES", c.MaxHeaderBytes, 1<<10)
	number("GATEWAY_MAX_BODY_BYTES", c.MaxBodyBytes, 16<<10)
	return faults
}

func span(least, most time.Duration) string {
	if most > 0 {
		return fmt.Sprintf("%s to %s", least, most)
	}
	return fmt.Sprintf("at least %s", least)
}

// cores are the base URLs. The error does not repeat what was given, which may hold a password.
func (c Config) cores() ([]*url.URL, error) {
	if len(c.CoreURLs) > cores.MaxCores {
		return nil, fmt.Errorf("must have at most %d URLs, not %d", cores.MaxCores, len(c.CoreURLs))
	}
	var all []*url.URL
	for n, text := range c.CoreURLs {
		core, err := url.Parse(strings.TrimSpace(text))
		if err != nil || core.Scheme != "http" && core.Scheme != "https" || core.Hostname() == "" || core.User != nil ||
			core.Path != "" && core.Path != "/" || core.RawQuery != "" || core.Fragment != "" {
			return nil, fmt.Errorf("must be http://host:port or https://host:port, or several with commas between; URL %d is not", n+1)
		}
		for earlier, other := range all {
			if cores.Address(core) == cores.Address(other) {
				return nil, fmt.Errorf("names one core twice: URLs %d and %d", earlier+1, n+1)
			}
		}
		all = append(all, core)
	}
	if len(all) == 0 {
		return nil, errors.New("must name a core, such as http://host:port")
	}
	return all, nil
}
