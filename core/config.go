package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"time"
	"unicode/utf8"

	"github.com/caarlos0/env/v11"

	"intents.internal/core/access"
	"intents.internal/core/postgres"
	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/topology"
)

// Config is every setting of core. They are read when core starts, from the environment and from the file that EnvFile names.
type Config struct {
	// EnvFile is a file of settings, one NAME=value a line, that override the environment's. Default none.
	EnvFile string `env:"CORE_ENV_FILE"`
	// Listen is the host:port gateways reach core at.
	Listen string `env:"CORE_LISTEN" envDefault:"127.0.0.1:8081"`
	// OpsListen is the host:port of the operations listener: /metrics, /livez, /readyz, /debug/pprof. Keep it private.
	OpsListen string `env:"CORE_OPS_LISTEN" envDefault:"127.0.0.1:9081"`
	// DatabaseURL is the Postgres database, postgres://user:password@host:port/name. Required.
	DatabaseURL telemetry.Secret `env:"CORE_DATABASE_URL"`
	// MigrateDatabaseURL is where migrations connect, Postgres itself, where DatabaseURL goes through a pooler such as
	// PgBouncer. DatabaseURL where it is not set.
	MigrateDatabaseURL telemetry.Secret `env:"CORE_MIGRATE_DATABASE_URL"`
	// ReadDatabaseURL is a streaming replica that lists of intents are read from as far as it is up to date. Default none.
	ReadDatabaseURL telemetry.Secret `env:"CORE_READ_DATABASE_URL"`
	// DatabaseConnections is the size of the connection pool, 1 to 1000. Long lists have a quarter of it.
	DatabaseConnections int `env:"CORE_DATABASE_CONNECTIONS" envDefault:"16"`
	// StatementTimeout is how long one SQL statement may take, 100ms to 1m. Above 7s, clients that poll with updated-since need a
	// longer overlap than the API docs' 60 seconds.
	StatementTimeout time.Duration `env:"CORE_STATEMENT_TIMEOUT" envDefault:"4s"`
	// EventsRetention is how long the events of intents are kept, 48h or longer, 0s for ever.
	EventsRetention time.Duration `env:"CORE_EVENTS_RETENTION" envDefault:"720h"`
	// AuditRetention is how long entries of the audit log are kept, 720h or longer, 0s for ever.
	AuditRetention time.Duration `env:"CORE_AUDIT_RETENTION" envDefault:"8760h"`
	// TransfersRetention is how long intents that have ended are kept after their last change, 720h or longer, 0s for ever:
	// they are the record of what was asked for, so nothing removes them unless this says so.
	TransfersRetention time.Duration `env:"CORE_TRANSFERS_RETENTION" envDefault:"0s"`
	// RPCFile is a file with the RPC URLs of the chains that are watched, as deploy/settings.md says. It is read when core starts.
	// Default none. Without it no chain is watched, and intents stay as clients leave them.
	RPCFile string `env:"CORE_RPC_FILE"`
	// Watch has core serve watch the chains of RPCFile as well. Without it a core watch must run.
	Watch bool `env:"CORE_WATCH" envDefault:"true"`
	// ChainTick is the shortest time between two looks at a chain, 100ms to 1m. A chain with longer blocks is looked at once a
	// block.
	ChainTick time.Duration `env:"CORE_CHAIN_TICK" envDefault:"4s"`
	// ChainGrace is how long after an intent's deadline a reported transaction that no provider knows is waited for, 1m to 168h.
	ChainGrace time.Duration `env:"CORE_CHAIN_GRACE" envDefault:"1h"`
	// GatewaySecret is shared with the gateways, 32 characters or more. Required.
	GatewaySecret telemetry.Secret `env:"CORE_GATEWAY_SECRET"`
	// GatewaySecretPrevious is a second secret that gateways may send while the shared secret is being replaced, 32 characters
	// or more. Default none.
	GatewaySecretPrevious telemetry.Secret `env:"CORE_GATEWAY_SECRET_PREVIOUS"`
	// RedisMode is which Redis there is: single (one server), cluster (a Redis Cluster) or sentinel (a master that Sentinels
	// watch over).
	RedisMode topology.Mode `env:"CORE_REDIS_MODE" envDefault:"single"`
	// RedisURL is where the limits below are kept, shared by all cores, and where gateways keep the keys' rate limits:
	// redis://, rediss:// or unix://. For a cluster redis://node1:6379?addr=node2:6379, for sentinels
	// redis://sentinel1:26379/0?addr=sentinel2:26379&master_name=mymaster, with as many addr as there are. While it does not
	// answer each core counts alone.
	RedisURL telemetry.Secret `env:"CORE_REDIS_URL" envDefault:"redis://127.0.0.1:6379/0"`
	// PublicURL is where browsers reach the service. With https, cookies are Secure.
	PublicURL string `env:"CORE_PUBLIC_URL" envDefault:"http://127.0.0.1:8080"`
	// SignUp is who may make an account: "open" for everyone, "closed" for nobody.
	SignUp string `env:"CORE_SIGN_UP" envDefault:"open"`
	// SignInPerIP is how often one address may try to sign in a minute, 1 to 1000000. A version 6 address counts by its /64.
	// This and the limits below are buckets of that size which refill at that rate.
	SignInPerIP int `env:"CORE_SIGN_IN_PER_IP" envDefault:"30"`
	// SignInPerAccount is how often an hour the password of one account may be tried from all browsers together that have not
	// signed in to it before, 1 to 1000000. Wrong passwords count.
	SignInPerAccount int `env:"CORE_SIGN_IN_PER_ACCOUNT" envDefault:"60"`
	// SignInPerAccountAndIP is how often an hour of those from one address, and how often from each browser that has signed in
	// to the account before, 1 to 1000000. A right password fills the bucket again.
	SignInPerAccountAndIP int `env:"CORE_SIGN_IN_PER_ACCOUNT_AND_IP" envDefault:"10"`
	// SignUpPerIP is how often one address may try to make an account an hour, 1 to 1000000.
	SignUpPerIP int `env:"CORE_SIGN_UP_PER_IP" envDefault:"20"`
	// KeysPerAccount is how many API keys one account may make or rotate an hour, 1 to 1000000.
	KeysPerAccount int `env:"CORE_KEYS_PER_ACCOUNT" envDefault:"100"`
	// KeysPerIP is the same for one address.
	KeysPerIP int `env:"CORE_KEYS_PER_IP" envDefault:"300"`
	// OIDCIssuer is the issuer URL of an OpenID Connect provider whose people may sign in, exactly as it names itself: https,
	// or http on a loopback address. Default none. Register CORE_PUBLIC_URL/auth/oauth2/callback/oidc there.
	OIDCIssuer string `env:"CORE_OIDC_ISSUER"`
	// OIDCClientID is what the provider knows this service by. Required with an issuer.
	OIDCClientID string `env:"CORE_OIDC_CLIENT_ID"`
	// OIDCClientSecret proves that to the provider. Required with an issuer.
	OIDCClientSecret telemetry.Secret `env:"CORE_OIDC_CLIENT_SECRET"`
	// OIDCName is what people know the provider by, 1 to 64 characters.
	OIDCName string `env:"CORE_OIDC_NAME" envDefault:"OpenID Connect"`
	// AccessLog writes one line per request to standard output. Without it there are lines of requests that failed by core's
	// fault alone. While nobody reads that, lines beyond 2 MiB are dropped, counted (`intents_core_log_dropped_total`) and reported
	// in a later line.
	AccessLog bool `env:"CORE_ACCESS_LOG" envDefault:"true"`
	// TracesEndpoint is the base URL of a collector of OpenTelemetry traces (OTLP over HTTP, which goes to /v1/traces below
	// it), such as http://127.0.0.1:4318. Default none; without it no traces are made.
	TracesEndpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	// TracesHeaders are headers of every export to the collector, such as its credentials: name=value, comma separated and
	// percent-encoded. Default none.
	TracesHeaders telemetry.Secret `env:"OTEL_EXPORTER_OTLP_HEADERS"`
	// TracesSampler says which traces are recorded that no gateway has decided on: parentbased_traceidratio (some),
	// parentbased_always_on or parentbased_always_off. Default parentbased_traceidratio.
	TracesSampler string `env:"OTEL_TRACES_SAMPLER" envDefault:"parentbased_traceidratio"`
	// TracesSamplerArg is the share of traces that parentbased_traceidratio records, 0 to 1. Default 0.1.
	TracesSamplerArg float64 `env:"OTEL_TRACES_SAMPLER_ARG" envDefault:"0.1"`
	// TracesServiceName is what traces call this service. Default none; without it that is the service.name in
	// TracesResource, else intents-core.
	TracesServiceName string `env:"OTEL_SERVICE_NAME"`
	// TracesResource is what else traces tell of this process: name=value, comma separated and percent-encoded. Default none.
	TracesResource string `env:"OTEL_RESOURCE_ATTRIBUTES"`
	// MigrateOnStart brings the database up to this version before serving.
	MigrateOnStart bool `env:"CORE_MIGRATE_ON_START" envDefault:"false"`
	// DrainDelay is how long core still takes requests after TERM, while it tells gateways to turn to another core, 0s to 1m.
	// Gateways ask twice a second.
	DrainDelay time.Duration `env:"CORE_DRAIN_DELAY" envDefault:"1500ms"`
	// ShutdownGrace is how long requests in flight may take after that, 1s to 5m.
	ShutdownGrace time.Duration `env:"CORE_SHUTDOWN_GRACE" envDefault:"15s"`
}

// readConfig reads all settings; validate checks those that are needed.
func readConfig(validate func(Config) error) (Config, error) {
	return settings.Read(env.ToMap(os.Environ()), "CORE_ENV_FILE", func(environment map[string]string) (Config, error) {
		config, err := env.ParseAsWithOptions[Config](env.Options{Environment: environment})
		if err != nil {
			return Config{}, fmt.Errorf("read the settings: %w", err)
		}
		return config, validate(config)
	})
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	return errors.Join(
		c.ValidateDatabase(),
		validAddress("CORE_LISTEN", c.Listen),
		validAddress("CORE_OPS_LISTEN", c.OpsListen),
		expect(len(c.GatewaySecret.Reveal()) >= 32, "CORE_GATEWAY_SECRET must have 32 characters or more; make one with: openssl rand -hex 32"),
		expect(c.GatewaySecretPrevious == "" || len(c.GatewaySecretPrevious.Reveal()) >= 32,
			"CORE_GATEWAY_SECRET_PREVIOUS must have 32 characters or more, or none"),
		validRedis(c.RedisMode, c.RedisURL),
		validOrigin(c.PublicURL),
		expect(c.SignUp == "open" || c.SignUp == "closed", `CORE_SIGN_UP must be "open" or "closed", not %q`, c.SignUp),
		c.validateLimits(),
		validRetention("CORE_EVENTS_RETENTION", c.EventsRetention, postgres.MinEventsRetention),
		validRetention("CORE_AUDIT_RETENTION", c.AuditRetention, postgres.MinAuditRetention),
		validRetention("CORE_TRANSFERS_RETENTION", c.TransfersRetention, postgres.MinTransfersRetention),
		c.validateChains(),
		c.validateOIDC(),
		c.tracing().Validate(),
		expect(c.DrainDelay >= 0 && c.DrainDelay <= time.Minute, "CORE_DRAIN_DELAY must be 0s to 1m, not %s", c.DrainDelay),
		expect(c.ShutdownGrace >= time.Second && c.ShutdownGrace <= 5*time.Minute, "CORE_SHUTDOWN_GRACE must be 1s to 5m, not %s", c.ShutdownGrace),
	)
}

// ValidateDatabase reports the faults of the settings that every subcommand needs.
func (c Config) ValidateDatabase() error {
	return errors.Join(
		expect(c.DatabaseURL != "", "CORE_DATABASE_URL is required, such as postgres://user:password@host:5432/name"),
		expect(c.DatabaseConnections >= 1 && c.DatabaseConnections <= 1000, "CORE_DATABASE_CONNECTIONS must be 1 to 1000, not %d", c.DatabaseConnections),
		expect(c.StatementTimeout >= 100*time.Millisecond && c.StatementTimeout <= time.Minute, "CORE_STATEMENT_TIMEOUT must be 100ms to 1m, not %s", c.StatementTimeout),
	)
}

func (c Config) validateLimits() error {
	var errs []error
	for _, limit := range []struct {
		name string
		n    int
	}{
		{"CORE_SIGN_IN_PER_IP", c.SignInPerIP},
		{"CORE_SIGN_IN_PER_ACCOUNT", c.SignInPerAccount},
		{"CORE_SIGN_IN_PER_ACCOUNT_AND_IP", c.SignInPerAccountAndIP},
		{"CORE_SIGN_UP_PER_IP", c.SignUpPerIP},
		{"CORE_KEYS_PER_ACCOUNT", c.KeysPerAccount},
		{"CORE_KEYS_PER_IP", c.KeysPerIP},
	} {
		errs = append(errs, expect(limit.n >= 1 && limit.n <= access.MaxLimit, "%s must be 1 to %d, not %d", limit.name, access.MaxLimit, limit.n))
	}
	return errors.Join(errs...)
}

// limits are the settings in access's words.
func (c Config) limits() access.Limits {
	return access.Limits{
		SignInPerIP: c.SignInPerIP, SignInPerAccount: c.SignInPerAccount, SignInPerAccountAndIP: c.SignInPerAccountAndIP,
		SignUpPerIP: c.SignUpPerIP, KeysPerAccount: c.KeysPerAccount, KeysPerIP: c.KeysPerIP,
	}
}

func (c Config) validateOIDC() error {
	if c.OIDCIssuer == "" {
		return expect(c.OIDCClientID == "" && c.OIDCClientSecret == "", "CORE_OIDC_ISSUER is required with a client id or secret")
	}
	name := utf8.RuneCountInString(c.OIDCName)
	return errors.Join(
		expect(validIssuer(c.OIDCIssuer), "CORE_OIDC_ISSUER must be an https:// URL, or http:// on a loopback address, not %q", c.OIDCIssuer),
		expect(c.OIDCClientID != "", "CORE_OIDC_CLIENT_ID is required with CORE_OIDC_ISSUER"),
		expect(c.OIDCClientSecret != "", "CORE_OIDC_CLIENT_SECRET is required with CORE_OIDC_ISSUER"),
		expect(name >= 1 && name <= 64, "CORE_OIDC_NAME must have 1 to 64 characters, not %d", name),
	)
}

// oidc is the provider, nil for none.
func (c Config) oidc() *access.OIDC {
	if c.OIDCIssuer == "" {
		return nil
	}
	return access.NewOIDC(access.OIDCConfig{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: c.OIDCClientSecret, Name: c.OIDCName,
	}, c.PublicURL)
}

// validIssuer wants TLS, without which anybody on the way could sign in as anybody, save on this machine.
func validIssuer(issuer string) bool {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	loopback := u.Hostname() == "localhost" || err == nil && address.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && loopback
}

func validRetention(name string, d, shortest time.Duration) error {
	return expect(d == 0 || d >= shortest, "%s must be %.0fh or longer, or 0s for ever, not %s", name, shortest.Hours(), d)
}

// retention is for how long the store keeps what.
func (c Config) retention() postgres.Retention {
	return postgres.Retention{Events: c.EventsRetention, Audit: c.AuditRetention, Transfers: c.TransfersRetention}
}

func validRedis(mode topology.Mode, rawURL telemetry.Secret) error {
	err := topology.Validate(mode, rawURL.Reveal())
	return expect(err == nil, "CORE_REDIS_URL %v", err)
}

func validAddress(name, address string) error {
	_, _, err := net.SplitHostPort(address)
	return expect(err == nil, "%s must be host:port, not %q", name, address)
}

func validOrigin(origin string) error {
	u, err := url.Parse(origin)
	plain := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Path == "" && u.RawQuery == ""
	return expect(plain, "CORE_PUBLIC_URL must be http:// or https:// and a host, without a path, not %q", origin)
}

func expect(ok bool, form string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(form, args...)
}
