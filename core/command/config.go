package command

import (
	"net/url"
	"time"
	"unicode/utf8"

	"intents.internal/core/identity"
	"intents.internal/core/retention"
	"intents.internal/pkg/loopback"
	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/topology"
)

// Config has all settings of core, which reads them at start from environment variables and from the file EnvFile.
type Config struct {
	// EnvFile is the path of a file of settings, one NAME=value per line, that override the environment. Default none.
	EnvFile string `env:"CORE_ENV_FILE"`
	// Listen is the host:port of the listener for gateways. Default 127.0.0.1:8081.
	Listen string `env:"CORE_LISTEN" envDefault:"127.0.0.1:8081"`
	// OpsListen is the host:port of the operations listener: /metrics, /livez, /readyz and /debug/pprof. Keep it private. Default
	// 127.0.0.1:9081.
	OpsListen string `env:"CORE_OPS_LISTEN" envDefault:"127.0.0.1:9081"`
	// DatabaseURL is the URL of the Postgres database, postgres://user:password@host:port/name. Several hosts, as in a:5432,b:5432, are
	// tried in turn until one takes writes. Required.
	DatabaseURL telemetry.Secret `env:"CORE_DATABASE_URL"`
	// MigrateDatabaseURL is the URL for migrations, directly to Postgres. Set it if DatabaseURL leads to a pooler such as PgBouncer;
	// without it migrations use DatabaseURL. Default none.
	MigrateDatabaseURL telemetry.Secret `env:"CORE_MIGRATE_DATABASE_URL"`
	// ReadDatabaseURL is the URL of a streaming replica. Lists of intents are read from it if it is up to date. Default none.
	ReadDatabaseURL telemetry.Secret `env:"CORE_READ_DATABASE_URL"`
	// DatabaseConnections is the maximum number of connections in the pool, 1 to 1000. Long lists use at most a quarter of them.
	// Default 16.
	DatabaseConnections int `env:"CORE_DATABASE_CONNECTIONS" envDefault:"16"`
	// StatementTimeout is the maximum duration of one SQL statement, 100ms to 1m. Above 7s, clients that poll with updated-since
	// need a longer overlap than the 60 seconds in the API docs. Default 4s.
	StatementTimeout time.Duration `env:"CORE_STATEMENT_TIMEOUT" envDefault:"4s"`
	// EventsRetention is how long events of intents are kept, at least 48h; 0s keeps them for ever. Default 720h.
	EventsRetention time.Duration `env:"CORE_EVENTS_RETENTION" envDefault:"720h"`
	// AuditRetention is how long entries of the audit log are kept, at least 720h; 0s keeps them for ever. Default 8760h.
	AuditRetention time.Duration `env:"CORE_AUDIT_RETENTION" envDefault:"8760h"`
	// TransfersRetention is how long intents with a final status are kept after their last change, at least 720h; 0s keeps them for
	// ever. Default 0s.
	TransfersRetention time.Duration `env:"CORE_TRANSFERS_RETENTION" envDefault:"0s"`
	// WebhookSecretKey is the key that seals the secrets of webhooks in the database: 32 bytes in hexadecimal or base64. Without it
	// webhooks are answered with 503, and nothing is sent. Default none.
	WebhookSecretKey telemetry.Secret `env:"CORE_WEBHOOK_SECRET_KEY"`
	// WebhookSecretKeyPrevious is the key before it while it is being replaced. A core that starts with both seals all secrets under
	// WebhookSecretKey and then logs that this one can be removed. Default none.
	WebhookSecretKeyPrevious telemetry.Secret `env:"CORE_WEBHOOK_SECRET_KEY_PREVIOUS"`
	// WebhookAllow are networks that webhooks may lead to besides public addresses, on any port: CIDRs, comma separated. Default none.
	WebhookAllow string `env:"CORE_WEBHOOK_ALLOW"`
	// RPCFile is the path of a JSON file with the RPC URLs of each watched chain. Without it no chain is watched, intents keep
	// the status that clients gave them, and smart accounts cannot sign in with Ethereum. Default none.
	RPCFile string `env:"CORE_RPC_FILE"`
	// Watch makes core serve watch the chains of RPCFile. Without it a core watch must run. Default true.
	Watch bool `env:"CORE_WATCH" envDefault:"true"`
	// RequireWatched refuses intents and quotes on a chain that is not watched with CHAIN_NOT_WATCHED, also while it has not been read
	// for two minutes. Without it they are taken, and their record says that they are not watched. Default false.
	RequireWatched bool `env:"CORE_REQUIRE_WATCHED" envDefault:"false"`
	// ChainTick is the minimum interval between two polls of a chain, 100ms to 1m. A chain with longer blocks is polled once per
	// block. Default 4s.
	ChainTick time.Duration `env:"CORE_CHAIN_TICK" envDefault:"4s"`
	// ChainGrace is how long after an intent's deadline core waits for a reported transaction that no provider knows, 1m to 168h.
	// Default 1h.
	ChainGrace time.Duration `env:"CORE_CHAIN_GRACE" envDefault:"1h"`
	// QuotesFile is the path of a JSON file with 1 to 32 providers of quotes. Without it requests for quotes are refused with
	// QUOTES_NOT_CONFIGURED. Default none.
	QuotesFile string `env:"CORE_QUOTES_FILE"`
	// QuotesAllow are networks that the providers of QuotesFile may be in besides public addresses, on any port: CIDRs, comma separated.
	// Providers of testnets may be called over http there, and nowhere else. Webhooks lead nowhere in them. Default none.
	QuotesAllow string `env:"CORE_QUOTES_ALLOW"`
	// ScreeningFile are the paths of the files of addresses that this service does not serve, comma separated: deploy/screening.md. Core does
	// not start without them, and reads them again when they change or on HUP. Without it nobody is refused. Default none.
	ScreeningFile string `env:"CORE_SCREENING_FILE"`
	// ScreeningContact is where somebody who is refused can ask why, a URL or a mail address of at most 200 characters; a refusal ends with it.
	// Default none.
	ScreeningContact string `env:"CORE_SCREENING_CONTACT"`
	// ScreeningMaxAge is the age of the oldest file of ScreeningFile above which the alert ScreeningListOld fires, 1h to 8760h. Default 48h.
	ScreeningMaxAge time.Duration `env:"CORE_SCREENING_MAX_AGE" envDefault:"48h"`
	// GatewaySecret is the secret shared with the gateways, the value of GATEWAY_CORE_SECRET: at least 32 characters. Required.
	GatewaySecret telemetry.Secret `env:"CORE_GATEWAY_SECRET"`
	// GatewaySecretPrevious is a second secret that core accepts from gateways while the shared secret is being replaced: at least
	// 32 characters. Default none.
	GatewaySecretPrevious telemetry.Secret `env:"CORE_GATEWAY_SECRET_PREVIOUS"`
	// RedisMode is the kind of Redis: single (one server), cluster (Redis Cluster) or sentinel (a master monitored by Sentinels).
	// Default single.
	RedisMode topology.Mode `env:"CORE_REDIS_MODE" envDefault:"single"`
	// RedisURL is the URL of the Redis with the limits below, which all cores share, and with the rate limits of keys: redis://,
	// rediss:// or unix://. For a cluster redis://node1:6379?addr=node2:6379, for sentinels
	// redis://sentinel1:26379/0?addr=sentinel2:26379&master_name=mymaster, with one addr per further node. While it does not answer,
	// each core counts by itself. Default redis://127.0.0.1:6379/0.
	RedisURL telemetry.Secret `env:"CORE_REDIS_URL" envDefault:"redis://127.0.0.1:6379/0"`
	// PublicURL is the URL of the service for browsers, http or https without a path. With https, cookies are Secure. Passkeys need a
	// domain and https, or localhost, and are bound to the host: another host ends all passkeys. Default http://127.0.0.1:8080.
	PublicURL string `env:"CORE_PUBLIC_URL" envDefault:"http://127.0.0.1:8080"`
	// SignUp is who may create an account: open (everyone) or closed (nobody). Default open.
	SignUp string `env:"CORE_SIGN_UP" envDefault:"open"`
	// SignInPerIP is the maximum number of sign-in attempts per minute of one IPv4 address or IPv6 /64, 1 to 1000000. This limit and
	// those below are token buckets of that size and refill rate. Default 30.
	SignInPerIP int `env:"CORE_SIGN_IN_PER_IP" envDefault:"30"`
	// SignInPerAccount is the maximum number of password attempts per hour on one account from all browsers that have not signed in
	// to it before, 1 to 1000000. Only wrong passwords count. Default 60.
	SignInPerAccount int `env:"CORE_SIGN_IN_PER_ACCOUNT" envDefault:"60"`
	// SignInPerAccountAndIP is the maximum number of such attempts per hour from one address, and of attempts per hour from each
	// browser that has signed in to the account before, 1 to 1000000. A correct password resets the count. Default 10.
	SignInPerAccountAndIP int `env:"CORE_SIGN_IN_PER_ACCOUNT_AND_IP" envDefault:"10"`
	// SignUpPerIP is the maximum number of attempts per hour of one address to create an account, 1 to 1000000. Default 20.
	SignUpPerIP int `env:"CORE_SIGN_UP_PER_IP" envDefault:"20"`
	// KeysPerAccount is the maximum number of API keys that one account creates or rotates per hour, 1 to 1000000. Default 100.
	KeysPerAccount int `env:"CORE_KEYS_PER_ACCOUNT" envDefault:"100"`
	// KeysPerIP is the maximum number of API keys created or rotated per hour from one address, 1 to 1000000. Default 300.
	KeysPerIP int `env:"CORE_KEYS_PER_IP" envDefault:"300"`
	// MailsPerAddress is the maximum number of mails per hour to one address that one IPv4 address or IPv6 /64 can have sent, 1 to
	// 1000000; all together can have four times as many of a kind sent. Default 5.
	MailsPerAddress int `env:"CORE_MAILS_PER_ADDRESS" envDefault:"5"`
	// MailsPerIP is the maximum number of mails per hour that one IPv4 address or IPv6 /64 can have sent, 1 to 1000000. Default 20.
	MailsPerIP int `env:"CORE_MAILS_PER_IP" envDefault:"20"`
	// SMTPURL is the URL of the server that takes mail: smtp://user:password@host:587 with STARTTLS, which is required unless the host is
	// a loopback address, or smtps://user:password@host:465. Without it no mail is sent, operators make the links to new passwords, and nobody
	// must verify an address. With it who signs up must open a mailed link first; accounts from before sign in without; and security
	// notices go to verified addresses. Default none.
	SMTPURL telemetry.Secret `env:"CORE_SMTP_URL"`
	// SMTPFrom is the sender of mail, such as Transfers <no-reply@example.com>. Required with SMTPURL.
	SMTPFrom string `env:"CORE_SMTP_FROM"`
	// OIDCIssuer is the issuer URL of an OpenID Connect provider for signing in, exactly as the provider states it: https, or http
	// on a loopback address. Register CORE_PUBLIC_URL/auth/oauth2/callback/oidc as the redirect URL there. Default none.
	OIDCIssuer string `env:"CORE_OIDC_ISSUER"`
	// OIDCClientID is the client id of this service at the provider. Required with OIDCIssuer.
	OIDCClientID string `env:"CORE_OIDC_CLIENT_ID"`
	// OIDCClientSecret is the client secret of this service at the provider. Required with OIDCIssuer.
	OIDCClientSecret telemetry.Secret `env:"CORE_OIDC_CLIENT_SECRET"`
	// OIDCName is the provider's name on the sign-in page, 1 to 64 characters. Default OpenID Connect.
	OIDCName string `env:"CORE_OIDC_NAME" envDefault:"OpenID Connect"`
	// OIDCACRValues are the values of acr, separated by spaces, by which the provider says that it checked more than a password
	// (OpenID Connect Core, section 3.1.2.1). They are sent as they stand, with max_age=600, and a sign-in whose acr is one of them and
	// whose auth_time is within ten minutes confirms what a passkey does. Without it none is asked for and none counts. Default none.
	OIDCACRValues string `env:"CORE_OIDC_ACR_VALUES"`
	// SecondFactor is whether persons must have a second factor: optional (they may have passkeys) or live-keys (only a person with a
	// passkey, or with a sign-in of OIDCACRValues, can create, rotate or widen a live key, give a live webhook more in the console, or make
	// somebody owner). Existing keys go on working. Default optional.
	SecondFactor string `env:"CORE_SECOND_FACTOR" envDefault:"optional"`
	// AccessLog turns on one log line per request on standard output, up to 100 ms after its end. Without it only requests that failed
	// by core's fault are logged. If standard output is not read, lines beyond 2 MiB are dropped, counted in
	// `intents_core_log_dropped_total` and reported in a later line. Default true.
	AccessLog bool `env:"CORE_ACCESS_LOG" envDefault:"true"`
	// TracesEndpoint is the base URL of an OpenTelemetry collector, such as http://127.0.0.1:4318; traces go to /v1/traces below it
	// (OTLP over HTTP). Without it core makes no traces. Default none.
	TracesEndpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	// TracesHeaders are the headers of each export to the collector, such as credentials: name=value, comma separated and
	// percent-encoded. Default none.
	TracesHeaders telemetry.Secret `env:"OTEL_EXPORTER_OTLP_HEADERS"`
	// TracesSampler selects the traces to record: always_on, always_off or traceidratio (a share of them), or the same with
	// parentbased_ before it, which keeps the sampling decision of a gateway. Default parentbased_traceidratio.
	TracesSampler string `env:"OTEL_TRACES_SAMPLER" envDefault:"parentbased_traceidratio"`
	// TracesSamplerArg is the share of traces that traceidratio and parentbased_traceidratio record, 0 to 1. Default 0.1.
	TracesSamplerArg float64 `env:"OTEL_TRACES_SAMPLER_ARG" envDefault:"0.1"`
	// TracesServiceName is the service name in traces. Without it the name is service.name of TracesResource, else intents-core.
	// Default none.
	TracesServiceName string `env:"OTEL_SERVICE_NAME"`
	// TracesResource are further resource attributes of traces: name=value, comma separated and percent-encoded. Default none.
	TracesResource string `env:"OTEL_RESOURCE_ATTRIBUTES"`
	// MigrateOnStart migrates the database to this version's schema before core serves requests. Default false.
	MigrateOnStart bool `env:"CORE_MIGRATE_ON_START" envDefault:"false"`
	// DrainDelay is how long core accepts requests after TERM while it tells gateways to use another core, 0s to 1m. Gateways probe
	// twice per second. Default 1500ms.
	DrainDelay time.Duration `env:"CORE_DRAIN_DELAY" envDefault:"1500ms"`
	// ShutdownGrace is the maximum wait for requests in flight after DrainDelay, 1s to 5m. Default 15s.
	ShutdownGrace time.Duration `env:"CORE_SHUTDOWN_GRACE" envDefault:"15s"`
}

// The values of SecondFactor.
const (
	secondFactorOptional = "optional"
	secondFactorLiveKeys = "live-keys"
)

// readConfig reads all settings; check adds the faults of those that are needed.
func readConfig(check func(Config, *settings.Faults)) (Config, error) {
	return settings.Read(settings.Environment(), "CORE_", check)
}

// check adds every fault of the values, also of what depends on the files that they name.
func (c Config) check(f *settings.Faults) {
	c.checkDatabase(f)
	f.Address("CORE_LISTEN", c.Listen)
	f.Address("CORE_OPS_LISTEN", c.OpsListen)
	f.Expect(len(c.GatewaySecret) >= 32, "CORE_GATEWAY_SECRET", "must have 32 characters or more; make one with: openssl rand -hex 32")
	f.Expect(c.GatewaySecretPrevious == "" || len(c.GatewaySecretPrevious) >= 32,
		"CORE_GATEWAY_SECRET_PREVIOUS", "must have 32 characters or more, or none")
	if err := topology.Validate(c.RedisMode, c.RedisURL.Reveal()); err != nil {
		f.Add("CORE_REDIS_URL", "%v", err)
	}
	c.checkPublicURL(f)
	f.Expect(c.SignUp == "open" || c.SignUp == "closed", "CORE_SIGN_UP", `must be "open" or "closed", not %q`, c.SignUp)
	f.Expect(c.SecondFactor == secondFactorOptional || c.SecondFactor == secondFactorLiveKeys, "CORE_SECOND_FACTOR",
		`must be "optional" or "live-keys", not %q`, c.SecondFactor)
	c.checkLimits(f)
	checkRetention(f, "CORE_EVENTS_RETENTION", c.EventsRetention, retention.MinEventsRetention)
	checkRetention(f, "CORE_AUDIT_RETENTION", c.AuditRetention, retention.MinAuditRetention)
	checkRetention(f, "CORE_TRANSFERS_RETENTION", c.TransfersRetention, retention.MinTransfersRetention)
	f.Duration("CORE_CHAIN_TICK", c.ChainTick, 100*time.Millisecond, time.Minute)
	f.Duration("CORE_CHAIN_GRACE", c.ChainGrace, time.Minute, 168*time.Hour)
	c.checkQuotes(f)
	c.checkScreening(f)
	c.checkWebhooks(f)
	c.checkMail(f)
	c.checkOIDC(f)
	c.tracing().Check(f)
	f.Duration("CORE_DRAIN_DELAY", c.DrainDelay, 0, time.Minute)
	f.Duration("CORE_SHUTDOWN_GRACE", c.ShutdownGrace, time.Second, 5*time.Minute)
}

// checkDatabase adds the faults of the settings that every subcommand needs.
func (c Config) checkDatabase(f *settings.Faults) {
	f.Expect(c.DatabaseURL != "", "CORE_DATABASE_URL", "is required, such as postgres://user:password@host:5432/name")
	f.Number("CORE_DATABASE_CONNECTIONS", c.DatabaseConnections, 1, 1000)
	f.Duration("CORE_STATEMENT_TIMEOUT", c.StatementTimeout, 100*time.Millisecond, time.Minute)
}

func (c Config) checkLimits(f *settings.Faults) {
	f.Number("CORE_SIGN_IN_PER_IP", c.SignInPerIP, 1, identity.MaxLimit)
	f.Number("CORE_SIGN_IN_PER_ACCOUNT", c.SignInPerAccount, 1, identity.MaxLimit)
	f.Number("CORE_SIGN_IN_PER_ACCOUNT_AND_IP", c.SignInPerAccountAndIP, 1, identity.MaxLimit)
	f.Number("CORE_SIGN_UP_PER_IP", c.SignUpPerIP, 1, identity.MaxLimit)
	f.Number("CORE_KEYS_PER_ACCOUNT", c.KeysPerAccount, 1, identity.MaxLimit)
	f.Number("CORE_KEYS_PER_IP", c.KeysPerIP, 1, identity.MaxLimit)
	f.Number("CORE_MAILS_PER_ADDRESS", c.MailsPerAddress, 1, identity.MaxLimit)
	f.Number("CORE_MAILS_PER_IP", c.MailsPerIP, 1, identity.MaxLimit)
}

// limits are the settings as identity.Limits.
func (c Config) limits() identity.Limits {
	return identity.Limits{
		SignInPerIP: c.SignInPerIP, SignInPerAccount: c.SignInPerAccount, SignInPerAccountAndIP: c.SignInPerAccountAndIP,
		SignUpPerIP: c.SignUpPerIP, KeysPerAccount: c.KeysPerAccount, KeysPerIP: c.KeysPerIP,
		MailsPerAddress: c.MailsPerAddress, MailsPerIP: c.MailsPerIP,
	}
}

func (c Config) checkOIDC(f *settings.Faults) {
	if c.OIDCIssuer == "" {
		f.Expect(c.OIDCClientID == "" && c.OIDCClientSecret == "", "CORE_OIDC_ISSUER", "is required with a client id or secret")
		f.Expect(c.OIDCACRValues == "", "CORE_OIDC_ISSUER", "is required with CORE_OIDC_ACR_VALUES")
		return
	}
	name := utf8.RuneCountInString(c.OIDCName)
	f.Expect(validIssuer(c.OIDCIssuer), "CORE_OIDC_ISSUER", "must be an https:// URL, or http:// on a loopback address, not %q", c.OIDCIssuer)
	f.Expect(c.OIDCClientID != "", "CORE_OIDC_CLIENT_ID", "is required with CORE_OIDC_ISSUER")
	f.Expect(c.OIDCClientSecret != "", "CORE_OIDC_CLIENT_SECRET", "is required with CORE_OIDC_ISSUER")
	f.Expect(name >= 1 && name <= 64, "CORE_OIDC_NAME", "must have 1 to 64 characters, not %d", name)
}

// oidc is the provider, nil for none.
func (c Config) oidc() *identity.OIDC {
	if c.OIDCIssuer == "" {
		return nil
	}
	return identity.NewOIDC(identity.OIDCConfig{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: c.OIDCClientSecret, Name: c.OIDCName, ACRValues: c.OIDCACRValues,
	}, c.PublicURL)
}

// validIssuer requires TLS except on a loopback address: without it anybody on the network path could sign in as anybody.
func validIssuer(issuer string) bool {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback.IsHost(u.Hostname())
}

func checkRetention(f *settings.Faults, name string, d, shortest time.Duration) {
	f.Expect(d == 0 || d >= shortest, name, "must be %.0fh or longer, or 0s for ever, not %s", shortest.Hours(), d)
}

// retention returns the retention settings of the store.
func (c Config) retention() retention.Retention {
	return retention.Retention{Events: c.EventsRetention, Audit: c.AuditRetention, Transfers: c.TransfersRetention}
}

func (c Config) checkPublicURL(f *settings.Faults) {
	u, err := url.Parse(c.PublicURL)
	plain := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Path == "" && u.RawQuery == ""
	f.Expect(plain, "CORE_PUBLIC_URL", "must be http:// or https:// and a host, without a path, not %q", c.PublicURL)
}
