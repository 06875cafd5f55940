package command

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"intents.internal/gateway/cores"
	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/topology"
	"intents.internal/pkg/wire"
)

// Config has all settings of the gateway. It reads them at start from environment variables and from the file EnvFile. Durations are
// written like 250ms or 1m.
type Config struct {
	// EnvFile is the path of a file of settings, one NAME=value per line, that override the environment. Default none.
	EnvFile string `env:"GATEWAY_ENV_FILE"`
	// Listen is the host:port of the public listener. Default 127.0.0.1:8080.
	Listen string `env:"GATEWAY_LISTEN" envDefault:"127.0.0.1:8080"`
	// OpsListen is the host:port of the operations listener: /metrics, /livez, /readyz and /debug/pprof. Keep it private. Default
	// 127.0.0.1:9080.
	OpsListen string `env:"GATEWAY_OPS_LISTEN" envDefault:"127.0.0.1:9080"`

	// CoreURLs are the base URLs of the cores, comma separated: 1 to 64, http or https, without a path. All cores use one database.
	// A host name stands for one core per address, at most 64 in total, and is resolved again every two seconds; IPv6 addresses are
	// used only if it has no IPv4 address. Each request goes to the core with the fewest requests in flight, where an error of
	// the last seconds counts as one; a core that does not answer is ejected until it answers again. Default http://127.0.0.1:8081.
	CoreURLs []string `env:"GATEWAY_CORE_URL" envDefault:"http://127.0.0.1:8081"`
	// CoreSecret is the secret shared with core, the value of CORE_GATEWAY_SECRET: at least 32 characters. Required.
	CoreSecret telemetry.Secret `env:"GATEWAY_CORE_SECRET"`
	// CoreTimeout is the maximum duration of a request to core, dials and all attempts included, and of each wait for more of a
	// streamed response. A request for quotes has at least 5s, because core waits up to 3s for providers. Default 10s; 100ms to 5m.
	CoreTimeout time.Duration `env:"GATEWAY_CORE_TIMEOUT" envDefault:"10s"`
	// CoreMaxConns is the maximum number of connections to one core in each of four pools: requests with a key, lists, requests
	// without a key, and the gateway's own requests. A long list (over 512 KiB or of unknown length) holds a connection until the
	// client has read it; one gateway streams at most three quarters of this number at once, and one account at most 1/24 of those
	// three quarters. The lists of any length that one account has in flight are limited to 1/4 of them. Requests for quotes, each of
	// which may last 3s, may be a quarter of this number, those of one account 1/8 of that quarter and those of one key 1/16. Default
	// 512; at least 1.
	CoreMaxConns int `env:"GATEWAY_CORE_MAX_CONNS" envDefault:"512"`
	// CoreSilence is how long all cores may be silent, or not ready, before /health responds with 503. Default 5s; at least 1s.
	CoreSilence time.Duration `env:"GATEWAY_CORE_SILENCE" envDefault:"5s"`
	// ChainsRefresh is the interval at which the gateway reads the environments of chains from core. Default 5s; at least 100ms.
	ChainsRefresh time.Duration `env:"GATEWAY_CHAINS_REFRESH" envDefault:"5s"`

	// RedisMode is the kind of Redis: single (one server), cluster (Redis Cluster) or sentinel (a master monitored by Sentinels).
	// Default single.
	RedisMode topology.Mode `env:"GATEWAY_REDIS_MODE" envDefault:"single"`
	// RedisURL is the URL of the Redis with the rate limits, which all gateways share: redis://, rediss:// or unix://. For a cluster
	// redis://node1:6379?addr=node2:6379, for sentinels redis://sentinel1:26379/0?addr=sentinel2:26379&master_name=mymaster, with
	// one addr per further node. Default redis://127.0.0.1:6379/0.
	RedisURL telemetry.Secret `env:"GATEWAY_REDIS_URL" envDefault:"redis://127.0.0.1:6379/0"`
	// LimitBudget is the maximum duration of one call to Redis, which many requests share. Default 50ms; 1ms to 5s.
	LimitBudget time.Duration `env:"GATEWAY_LIMIT_BUDGET" envDefault:"50ms"`
	// LimitFallback decides on requests while Redis does not answer: local (buckets per gateway), open (all requests
	// pass) or closed (503). Default local.
	LimitFallback limit.Fallback `env:"GATEWAY_LIMIT_FALLBACK" envDefault:"local"`
	// LimitMemory is the maximum number of rate limit buckets, of keys and of accounts, copied to this process, about 300 bytes
	// each. They refuse requests without a call to Redis and are used by the fallback local. Default 100000; at least 1.
	LimitMemory int `env:"GATEWAY_LIMIT_MEMORY" envDefault:"100000"`

	// KeyCache is the maximum number of cached key verdicts, about 360 bytes each, 32 more for each network that the key is restricted to, and
	// 16 and its length for each origin of its account. Default 1000000; at least 1.
	KeyCache int `env:"GATEWAY_KEY_CACHE" envDefault:"1000000"`
	// KeyTTL is the maximum age of a cached verdict. A change of the key invalidates it within a second. Default 5m; at least 1s.
	KeyTTL time.Duration `env:"GATEWAY_KEY_TTL" envDefault:"5m"`
	// UnknownKeyTTL is the maximum age of a cached refusal of an unknown or unusable key. A change of the key invalidates it within
	// a second. Default 10s; at least 100ms.
	UnknownKeyTTL time.Duration `env:"GATEWAY_UNKNOWN_KEY_TTL" envDefault:"10s"`
	// KeyLookUpTimeout is the maximum duration of a key look-up at core, and of the wait for core's key changes before a key is
	// refused as unknown. Default 800ms; 10ms to 1s.
	KeyLookUpTimeout time.Duration `env:"GATEWAY_KEY_LOOKUP_TIMEOUT" envDefault:"800ms"`
	// KeyLookUps is the maximum number of key look-ups in flight. Default 64; at least 1.
	KeyLookUps int `env:"GATEWAY_KEY_LOOKUPS" envDefault:"64"`

	// UsageInterval is the interval at which the gateway reports the usage counts of 200 keys to core. The counts of more keys are
	// reported over the next minute, so that core writes little more than one row per key in use, gateway and minute. A gateway that is
	// killed loses what it has not reported. Default 5s; 1s to 1m.
	UsageInterval time.Duration `env:"GATEWAY_USAGE_INTERVAL" envDefault:"5s"`
	// UsageBacklog is the maximum number of usage counts that wait to be reported, one per key and minute, about 200 bytes each. When
	// half of them wait, they are reported as fast as core answers; beyond it the oldest are dropped. Default 200000; at least 1000.
	UsageBacklog int `env:"GATEWAY_USAGE_BACKLOG" envDefault:"200000"`

	// ReadTimeout is the maximum time to receive a request, headers and body together, and the maximum wait for the first byte on a
	// new connection. Default 10s; at least 100ms.
	ReadTimeout time.Duration `env:"GATEWAY_READ_TIMEOUT" envDefault:"10s"`
	// WriteTimeout is the maximum time for a client to read a response that is not a list or page. Default 30s; at least 100ms.
	WriteTimeout time.Duration `env:"GATEWAY_WRITE_TIMEOUT" envDefault:"30s"`
	// StreamTimeout is the maximum time for a client to read a list or page. Default 10m; at least 100ms.
	StreamTimeout time.Duration `env:"GATEWAY_STREAM_TIMEOUT" envDefault:"10m"`
	// StreamRate is the minimum average rate, in bytes per second, at which a client must read a list or page. The gateway closes
	// the connection of a client that is more than WriteTimeout behind it. 0 turns this off. Default 65536.
	StreamRate int `env:"GATEWAY_STREAM_RATE" envDefault:"65536"`
	// IdleTimeout is the maximum time that a client connection may be idle between requests. Set it above the idle timeout of a load
	// balancer before the gateway, so that the load balancer is the side that closes: it could otherwise send a request while the
	// gateway closes, and answer 502. That of AWS ALB and of nginx is 60s. Default 75s; at least 1s.
	IdleTimeout time.Duration `env:"GATEWAY_IDLE_TIMEOUT" envDefault:"75s"`
	// MaxConns is the maximum number of client connections; further ones get 503 and are closed. It is reduced to at most three
	// quarters of the process's limit of open files (ulimit -n), and MaxConnsPerIP in proportion. Default 65536; at least 1.
	MaxConns int `env:"GATEWAY_MAX_CONNS" envDefault:"65536"`
	// MaxConnsPerIP is the maximum number of client connections of one IPv4 address or IPv6 /64. Behind a proxy all clients share
	// the proxy's address. 0 turns this off. Default 16384.
	MaxConnsPerIP int `env:"GATEWAY_MAX_CONNS_PER_IP" envDefault:"16384"`
	// MaxPolls is the maximum number of requests GET /v2/events?wait= that wait for an event, about 20 KiB each; further ones get
	// 429 TOO_MANY_POLLS. One key may have 2 of them and one account 8. Default 10000; at least 1.
	MaxPolls int `env:"GATEWAY_MAX_POLLS" envDefault:"10000"`
	// MaxHeaderBytes is the maximum size of a request line and its headers in bytes; each request has a buffer of this size until
	// it has been read. Default 8192; 1024 to 1048576.
	MaxHeaderBytes int `env:"GATEWAY_MAX_HEADER_BYTES" envDefault:"8192"`
	// MaxBodyBytes is the maximum size of a request body in bytes. POST /v2/transfers and POST /v2/quotes have a fixed maximum of
	// 16384, and POST /v2/transfers/batch one of 65536. Default 65536; at least 16384.
	MaxBodyBytes int `env:"GATEWAY_MAX_BODY_BYTES" envDefault:"65536"`
	// TrustedProxies are the networks, CIDR and comma separated, of proxies whose X-Forwarded-For and X-Forwarded-Proto the gateway
	// uses; addresses there may have a port or brackets. What cannot be read counts in `intents_gateway_forwarded_unreadable_total`.
	// 0.0.0.0/0 and ::/0 are refused. Default none.
	TrustedProxies []netip.Prefix `env:"GATEWAY_TRUSTED_PROXIES"`

	// AccessLog turns on one log line per request on standard output. If standard output is not read, lines beyond 2 MiB are
	// dropped, counted in `intents_gateway_access_log_dropped_total` and reported in a later line. Default true.
	AccessLog bool `env:"GATEWAY_ACCESS_LOG" envDefault:"true"`
	// TracesEndpoint is the base URL of an OpenTelemetry collector, such as http://127.0.0.1:4318; traces go to /v1/traces below it
	// (OTLP over HTTP). Without it the gateway makes no traces. Default none.
	TracesEndpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	// TracesHeaders are the headers of each export to the collector, such as credentials: name=value, comma separated and
	// percent-encoded. Default none.
	TracesHeaders telemetry.Secret `env:"OTEL_EXPORTER_OTLP_HEADERS"`
	// TracesSampler selects the traces to record: always_on, always_off or traceidratio (a share of them), or the same with
	// parentbased_ before it, which keeps the decision of a client that TracesTrustClients trusts. Default parentbased_traceidratio.
	TracesSampler string `env:"OTEL_TRACES_SAMPLER" envDefault:"parentbased_traceidratio"`
	// TracesSamplerArg is the share of traces that traceidratio and parentbased_traceidratio record, 0 to 1. Default 0.1.
	TracesSamplerArg float64 `env:"OTEL_TRACES_SAMPLER_ARG" envDefault:"0.1"`
	// TracesTrustClients accepts the sampled flag of a client's traceparent, so that clients may cause any number of traces to be
	// recorded. Without it the sampler decides, and the trace keeps the client's trace id. Default false.
	TracesTrustClients bool `env:"GATEWAY_TRACES_TRUST_CLIENTS" envDefault:"false"`
	// TracesServiceName is the service name in traces. Without it the name is service.name of TracesResource, else intents-gateway.
	// Default none.
	TracesServiceName string `env:"OTEL_SERVICE_NAME"`
	// TracesResource are further resource attributes of traces: name=value, comma separated and percent-encoded. Default none.
	TracesResource string `env:"OTEL_RESOURCE_ATTRIBUTES"`

	// DrainDelay is how long the gateway accepts connections after TERM while /readyz fails, so that load balancers stop sending
	// requests. Default 1s; at least 0s.
	DrainDelay time.Duration `env:"GATEWAY_DRAIN_DELAY" envDefault:"1s"`
	// DrainTimeout is the maximum wait for requests in flight after DrainDelay. Default 30s; at least 1s.
	DrainTimeout time.Duration `env:"GATEWAY_DRAIN_TIMEOUT" envDefault:"30s"`
}

// ParseConfig reads all settings over the defaults, and reports all that are unknown, unreadable or out of bounds at once.
func ParseConfig(environment map[string]string) (Config, error) {
	return settings.Read(environment, "GATEWAY_", Config.check)
}

// check adds every fault of the values.
func (c Config) check(f *settings.Faults) {
	f.Address("GATEWAY_LISTEN", c.Listen)
	f.Address("GATEWAY_OPS_LISTEN", c.OpsListen)
	if _, err := c.cores(); err != nil {
		f.Add("GATEWAY_CORE_URL", "%v", err)
	}
	f.Expect(len(c.CoreSecret) >= 32, "GATEWAY_CORE_SECRET", "must have at least 32 characters")
	if err := topology.Validate(c.RedisMode, c.RedisURL.Reveal()); err != nil {
		f.Add("GATEWAY_REDIS_URL", "%v", err)
	}

	f.Duration("GATEWAY_CORE_TIMEOUT", c.CoreTimeout, 100*time.Millisecond, 5*time.Minute)
	f.Duration("GATEWAY_CORE_SILENCE", c.CoreSilence, time.Second, 0)
	f.Duration("GATEWAY_CHAINS_REFRESH", c.ChainsRefresh, 100*time.Millisecond, 0)
	f.Duration("GATEWAY_LIMIT_BUDGET", c.LimitBudget, time.Millisecond, 5*time.Second)
	f.Duration("GATEWAY_KEY_TTL", c.KeyTTL, time.Second, 0)
	f.Duration("GATEWAY_UNKNOWN_KEY_TTL", c.UnknownKeyTTL, 100*time.Millisecond, 0)
	f.Duration("GATEWAY_KEY_LOOKUP_TIMEOUT", c.KeyLookUpTimeout, 10*time.Millisecond, keys.MaxStaleness)
	f.Duration("GATEWAY_USAGE_INTERVAL", c.UsageInterval, time.Second, time.Minute)
	f.Duration("GATEWAY_READ_TIMEOUT", c.ReadTimeout, 100*time.Millisecond, 0)
	f.Duration("GATEWAY_WRITE_TIMEOUT", c.WriteTimeout, 100*time.Millisecond, 0)
	f.Duration("GATEWAY_STREAM_TIMEOUT", c.StreamTimeout, 100*time.Millisecond, 0)
	f.Duration("GATEWAY_IDLE_TIMEOUT", c.IdleTimeout, time.Second, 0)
	f.Duration("GATEWAY_DRAIN_DELAY", c.DrainDelay, 0, 0)
	f.Duration("GATEWAY_DRAIN_TIMEOUT", c.DrainTimeout, time.Second, 0)

	c.tracing().Check(f)

	f.Number("GATEWAY_CORE_MAX_CONNS", c.CoreMaxConns, 1, 0)
	f.Number("GATEWAY_LIMIT_MEMORY", c.LimitMemory, 1, 0)
	f.Number("GATEWAY_KEY_CACHE", c.KeyCache, 1, 0)
	f.Number("GATEWAY_KEY_LOOKUPS", c.KeyLookUps, 1, 0)
	f.Number("GATEWAY_USAGE_BACKLOG", c.UsageBacklog, wire.MaxUsageRows, 0)
	f.Number("GATEWAY_STREAM_RATE", c.StreamRate, 0, 0)
	f.Number("GATEWAY_MAX_CONNS", c.MaxConns, 1, 0)
	f.Number("GATEWAY_MAX_CONNS_PER_IP", c.MaxConnsPerIP, 0, 0)
	f.Number("GATEWAY_MAX_POLLS", c.MaxPolls, 1, 0)
	f.Number("GATEWAY_MAX_HEADER_BYTES", c.MaxHeaderBytes, 1<<10, 0)
	f.Number("GATEWAY_MAX_BODY_BYTES", c.MaxBodyBytes, 16<<10, 0)

	if slices.ContainsFunc(c.TrustedProxies, func(p netip.Prefix) bool { return p.Bits() == 0 }) {
		f.Add("GATEWAY_TRUSTED_PROXIES", "must not have 0.0.0.0/0 or ::/0: every client could say that it has another address. Name the networks "+
			"of the proxies alone")
	}
}

// cores returns the base URLs. The error does not repeat the value, which may contain a password.
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
