package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/caarlos0/env/v11"

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
	// DatabaseConnections is the size of the connection pool, 1 to 1000.
	DatabaseConnections int `env:"CORE_DATABASE_CONNECTIONS" envDefault:"16"`
	// StatementTimeout is how long one SQL statement may take, 100ms to 1m.
	StatementTimeout time.Duration `env:"CORE_STATEMENT_TIMEOUT" envDefault:"4s"`
	// GatewaySecret is shared with the gateways, 32 characters or more. Required.
	GatewaySecret telemetry.Secret `env:"CORE_GATEWAY_SECRET"`
	// PublicURL is where browsers reach the service. With https, cookies are Secure.
	PublicURL string `env:"CORE_PUBLIC_URL" envDefault:"http://127.0.0.1:8080"`
	// SignUp is who may make an account: "open" for everyone, "closed" for nobody.
	SignUp string `env:"CORE_SIGN_UP" envDefault:"open"`
	// MigrateOnStart brings the database up to this version before serving.
	MigrateOnStart bool `env:"CORE_MIGRATE_ON_START" envDefault:"false"`
	// ShutdownGrace is how long requests in flight may take after TERM, 1s to 5m.
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
		validOrigin(c.PublicURL),
		expect(c.SignUp == "open" || c.SignUp == "closed", `CORE_SIGN_UP must be "open" or "closed", not %q`, c.SignUp),
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
