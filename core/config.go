package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/caarlos0/env/v11"
	"github.com/redis/go-redis/v9"

	"intents.internal/core/access"
	"intents.internal/pkg/telemetry"
)

// Config is every setting of core. They are read from the environment.
type Config struct {
	// Listen is the host:port gateways reach core at.
	Listen string `env:"CORE_LISTEN" envDefault:"127.0.0.1:8081"`
	// OpsListen is the host:port of the operations listener: /metrics, /livez, /readyz, /debug/pprof. Keep it private.
	OpsListen string `env:"CORE_OPS_LISTEN" envDefault:"127.0.0.1:9081"`
	// DatabaseURL is the Postgres database, postgres://user:password@host:port/name. Required.
	DatabaseURL telemetry.Secret `env:"CORE_DATABASE_URL"`
	// DatabaseConnections is the size of the connection pool, 1 to 1000. Long lists have a quarter of it.
	DatabaseConnections int `env:"CORE_DATABASE_CONNECTIONS" envDefault:"16"`
	// StatementTimeout is how long one SQL statement may take, 100ms to 1m.
	StatementTimeout time.Duration `env:"CORE_STATEMENT_TIMEOUT" envDefault:"4s"`
	// GatewaySecret is shared with the gateways, 32 characters or more. Required.
	GatewaySecret telemetry.Secret `env:"CORE_GATEWAY_SECRET"`
	// RedisURL is where the limits below are kept, shared by all cores, and where gateways keep the keys' rate limits:
	// redis://, rediss:// or unix://. While it does not answer each core counts alone.
	RedisURL telemetry.Secret `env:"CORE_REDIS_URL" envDefault:"redis://127.0.0.1:6379/0"`
	// PublicURL is where browsers reach the service. With https, cookies are Secure.
	PublicURL string `env:"CORE_PUBLIC_URL" envDefault:"http://127.0.0.1:8080"`
	// SignUp is who may make an account: "open" for everyone, "closed" for nobody.
	SignUp string `env:"CORE_SIGN_UP" envDefault:"open"`
	// SignInPerIP is how often one address may try to sign in a minute, 1 to 1000000. A version 6 address counts by its /64.
	// This and the limits below are buckets of that size which refill at that rate.
	SignInPerIP int `env:"CORE_SIGN_IN_PER_IP" envDefault:"30"`
	// SignInPerAccount is how often the password of one account may be tried in 15 minutes, 1 to 1000000. A right one fills
	// the bucket again.
	SignInPerAccount int `env:"CORE_SIGN_IN_PER_ACCOUNT" envDefault:"10"`
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
	// MigrateOnStart brings the database up to this version before serving.
	MigrateOnStart bool `env:"CORE_MIGRATE_ON_START" envDefault:"false"`
	// DrainDelay is how long core still takes requests after TERM, while it tells gateways to turn to another core, 0s to 1m.
	// Gateways ask twice a second.
	DrainDelay time.Duration `env:"CORE_DRAIN_DELAY" envDefault:"1500ms"`
	// ShutdownGrace is how long requests in flight may take after that, 1s to 5m.
	ShutdownGrace time.Duration `env:"CORE_SHUTDOWN_GRACE" envDefault:"15s"`
}

// readConfig reads the environment. What it returns is not validated yet.
func readConfig() (Config, error) {
	config, err := env.ParseAs[Config]()
	if err != nil {
		return Config{}, fmt.Errorf("read the settings: %w", err)
	}
	return config, nil
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	return errors.Join(
		c.ValidateDatabase(),
		validAddress("CORE_LISTEN", c.Listen),
		validAddress("CORE_OPS_LISTEN", c.OpsListen),
		expect(len(c.GatewaySecret.Reveal()) >= 32, "CORE_GATEWAY_SECRET must have 32 characters or more; make one with: openssl rand -hex 32"),
		validRedis(c.RedisURL),
		validOrigin(c.PublicURL),
		expect(c.SignUp == "open" || c.SignUp == "closed", `CORE_SIGN_UP must be "open" or "closed", not %q`, c.SignUp),
		c.validateLimits(),
		c.validateOIDC(),
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
		SignInPerIP: c.SignInPerIP, SignInPerAccount: c.SignInPerAccount, SignUpPerIP: c.SignUpPerIP,
		KeysPerAccount: c.KeysPerAccount, KeysPerIP: c.KeysPerIP,
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

func validRedis(rawURL telemetry.Secret) error {
	_, err := redis.ParseURL(rawURL.Reveal())
	return expect(err == nil, "CORE_REDIS_URL must be a URL such as redis://127.0.0.1:6379/0")
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
