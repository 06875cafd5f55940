package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/topology"
)

// valid is a Config without a fault.
func valid() Config {
	return Config{
		Listen: "127.0.0.1:8081", OpsListen: "127.0.0.1:9081", DatabaseURL: "postgres://intents:hunter2@127.0.0.1/intents",
		DatabaseConnections: 16, StatementTimeout: 4 * time.Second, GatewaySecret: "hunter2-hunter2-hunter2-hunter2-",
		RedisURL: "redis://:hunter2@127.0.0.1:6379/0", PublicURL: "https://intents.example", SignUp: "open", SecondFactor: "optional",
		SignInPerIP: 30, SignInPerAccount: 60, SignInPerAccountAndIP: 10, SignUpPerIP: 20, KeysPerAccount: 100, KeysPerIP: 300,
		MailsPerAddress: 5, MailsPerIP: 20,
		ShutdownGrace: 15 * time.Second, ChainTick: 4 * time.Second, ChainGrace: time.Hour, ScreeningMaxAge: 48 * time.Hour,
	}
}

// provided is a Config with an OpenID Connect provider.
func provided(c *Config) {
	c.OIDCIssuer, c.OIDCClientID, c.OIDCClientSecret, c.OIDCName = "https://id.example/realm", "intents", "hunter2", "Example"
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Config)
		fault  string // the setting that is blamed, empty for none
	}{
		"as it is": {func(*Config) {}, ""},
		"the lowest bounds": {func(c *Config) {
			c.DatabaseConnections, c.StatementTimeout, c.DrainDelay, c.ShutdownGrace = 1, 100*time.Millisecond, 0, time.Second
			c.ChainTick, c.ChainGrace = 100*time.Millisecond, time.Minute
		}, ""},
		"the highest bounds": {func(c *Config) {
			c.DatabaseConnections, c.StatementTimeout, c.DrainDelay, c.ShutdownGrace = 1000, time.Minute, time.Minute, 5*time.Minute
			c.ChainTick, c.ChainGrace = time.Minute, 168*time.Hour
		}, ""},
		"sign-up closed":       {func(c *Config) { c.SignUp = "closed" }, ""},
		"any port":             {func(c *Config) { c.Listen, c.OpsListen = ":0", "[::1]:9081" }, ""},
		"no database":          {func(c *Config) { c.DatabaseURL = "" }, "CORE_DATABASE_URL"},
		"no connections":       {func(c *Config) { c.DatabaseConnections = 0 }, "CORE_DATABASE_CONNECTIONS"},
		"too many connections": {func(c *Config) { c.DatabaseConnections = 1001 }, "CORE_DATABASE_CONNECTIONS"},
		"no retention":         {func(c *Config) { c.EventsRetention, c.AuditRetention, c.TransfersRetention = 0, 0, 0 }, ""},
		"short retentions": {func(c *Config) {
			c.EventsRetention, c.AuditRetention, c.TransfersRetention = 48*time.Hour, 720*time.Hour, 720*time.Hour
		}, ""},
		"events for an hour":  {func(c *Config) { c.EventsRetention = time.Hour }, "CORE_EVENTS_RETENTION"},
		"a log for a day":     {func(c *Config) { c.AuditRetention = 719 * time.Hour }, "CORE_AUDIT_RETENTION"},
		"intents for less":    {func(c *Config) { c.TransfersRetention = -time.Hour }, "CORE_TRANSFERS_RETENTION"},
		"too little time":     {func(c *Config) { c.StatementTimeout = 99 * time.Millisecond }, "CORE_STATEMENT_TIMEOUT"},
		"too much time":       {func(c *Config) { c.StatementTimeout = time.Minute + 1 }, "CORE_STATEMENT_TIMEOUT"},
		"no tick":             {func(c *Config) { c.ChainTick = 99 * time.Millisecond }, "CORE_CHAIN_TICK"},
		"a long tick":         {func(c *Config) { c.ChainTick = time.Minute + 1 }, "CORE_CHAIN_TICK"},
		"no grace":            {func(c *Config) { c.ChainGrace = time.Minute - 1 }, "CORE_CHAIN_GRACE"},
		"endless grace":       {func(c *Config) { c.ChainGrace = 168*time.Hour + 1 }, "CORE_CHAIN_GRACE"},
		"no drain":            {func(c *Config) { c.DrainDelay = -1 }, "CORE_DRAIN_DELAY"},
		"an endless drain":    {func(c *Config) { c.DrainDelay = time.Minute + 1 }, "CORE_DRAIN_DELAY"},
		"a short secret":      {func(c *Config) { c.GatewaySecret = "hunter2-hunter2-hunter2-hunter2" }, "CORE_GATEWAY_SECRET"},
		"no port":             {func(c *Config) { c.Listen = "127.0.0.1" }, "CORE_LISTEN"},
		"no operations port":  {func(c *Config) { c.OpsListen = "localhost" }, "CORE_OPS_LISTEN"},
		"no scheme":           {func(c *Config) { c.PublicURL = "intents.example" }, "CORE_PUBLIC_URL"},
		"another scheme":      {func(c *Config) { c.PublicURL = "ftp://intents.example" }, "CORE_PUBLIC_URL"},
		"a path":              {func(c *Config) { c.PublicURL = "https://intents.example/" }, "CORE_PUBLIC_URL"},
		"a query":             {func(c *Config) { c.PublicURL = "https://intents.example?a=b" }, "CORE_PUBLIC_URL"},
		"another word":        {func(c *Config) { c.SignUp = "Open" }, "CORE_SIGN_UP"},
		"no Redis":            {func(c *Config) { c.RedisURL = "" }, "CORE_REDIS_URL"},
		"another database":    {func(c *Config) { c.RedisURL = "http://:hunter2@127.0.0.1" }, "CORE_REDIS_URL"},
		"a cluster":           {func(c *Config) { c.RedisMode, c.RedisURL = topology.Cluster, "redis://:hunter2@a:1?addr=b:2" }, ""},
		"two of one":          {func(c *Config) { c.RedisURL = "redis://:hunter2@a:1?addr=b:2" }, "CORE_REDIS_URL"},
		"sentinels of nobody": {func(c *Config) { c.RedisMode = topology.Sentinel }, "CORE_REDIS_URL"},
		"the lowest limits": {func(c *Config) {
			c.SignInPerIP, c.SignInPerAccount, c.SignInPerAccountAndIP = 1, 1, 1
			c.SignUpPerIP, c.KeysPerAccount, c.KeysPerIP, c.MailsPerAddress, c.MailsPerIP = 1, 1, 1, 1, 1
		}, ""},
		"no sign-in":                    {func(c *Config) { c.SignInPerIP = 0 }, "CORE_SIGN_IN_PER_IP"},
		"no sign-in at all":             {func(c *Config) { c.SignInPerAccount = -1 }, "CORE_SIGN_IN_PER_ACCOUNT"},
		"no sign-in from an IP":         {func(c *Config) { c.SignInPerAccountAndIP = 0 }, "CORE_SIGN_IN_PER_ACCOUNT_AND_IP"},
		"no sign-up":                    {func(c *Config) { c.SignUpPerIP = 0 }, "CORE_SIGN_UP_PER_IP"},
		"too many keys":                 {func(c *Config) { c.KeysPerAccount = 1_000_001 }, "CORE_KEYS_PER_ACCOUNT"},
		"no keys":                       {func(c *Config) { c.KeysPerIP = 0 }, "CORE_KEYS_PER_IP"},
		"no mails to an address":        {func(c *Config) { c.MailsPerAddress = 0 }, "CORE_MAILS_PER_ADDRESS"},
		"too many mails":                {func(c *Config) { c.MailsPerIP = 1_000_001 }, "CORE_MAILS_PER_IP"},
		"a mail server":                 {func(c *Config) { c.SMTPURL, c.SMTPFrom = "smtp://ann:hunter2@example.com", "a@example.com" }, ""},
		"mail from nobody":              {func(c *Config) { c.SMTPURL = "smtp://ann:hunter2@example.com" }, "CORE_SMTP_FROM"},
		"mail to nowhere":               {func(c *Config) { c.SMTPFrom = "a@example.com" }, "CORE_SMTP_URL"},
		"mail by HTTP":                  {func(c *Config) { c.SMTPURL, c.SMTPFrom = "http://ann:hunter2@example.com", "a@example.com" }, "CORE_SMTP_URL"},
		"a provider":                    {provided, ""},
		"a provider here":               {func(c *Config) { provided(c); c.OIDCIssuer = "http://127.0.0.1:9000" }, ""},
		"a provider without TLS":        {func(c *Config) { provided(c); c.OIDCIssuer = "http://id.example" }, "CORE_OIDC_ISSUER"},
		"a provider with a query":       {func(c *Config) { provided(c); c.OIDCIssuer += "?a=b" }, "CORE_OIDC_ISSUER"},
		"no issuer":                     {func(c *Config) { c.OIDCClientID = "intents" }, "CORE_OIDC_ISSUER"},
		"no client id":                  {func(c *Config) { provided(c); c.OIDCClientID = "" }, "CORE_OIDC_CLIENT_ID"},
		"no client secret":              {func(c *Config) { provided(c); c.OIDCClientSecret = "" }, "CORE_OIDC_CLIENT_SECRET"},
		"a second factor for live keys": {func(c *Config) { c.SecondFactor = "live-keys" }, ""},
		"another second factor":         {func(c *Config) { c.SecondFactor = "always" }, "CORE_SECOND_FACTOR"},
		"no second factor":              {func(c *Config) { c.SecondFactor = "" }, "CORE_SECOND_FACTOR"},
		"acr values":                    {func(c *Config) { provided(c); c.OIDCACRValues = "phr phrh" }, ""},
		"acr values of no provider":     {func(c *Config) { c.OIDCACRValues = "phr" }, "CORE_OIDC_ISSUER"},
		"no provider name":              {func(c *Config) { provided(c); c.OIDCName = "" }, "CORE_OIDC_NAME"},
		"a key for secrets":             {func(c *Config) { c.WebhookSecretKey = telemetry.Secret(strings.Repeat("0a", 32)) }, ""},
		"a short key":                   {func(c *Config) { c.WebhookSecretKey = "hunter2" }, "CORE_WEBHOOK_SECRET_KEY"},
		"a previous key alone": {func(c *Config) {
			c.WebhookSecretKeyPrevious = telemetry.Secret(strings.Repeat("0a", 32))
		}, "CORE_WEBHOOK_SECRET_KEY"},
		"allowed networks":        {func(c *Config) { c.WebhookAllow = "10.1.0.0/16, fd00::/8" }, ""},
		"an address alone":        {func(c *Config) { c.WebhookAllow = "10.1.0.1" }, "CORE_WEBHOOK_ALLOW"},
		"screening files":         {func(c *Config) { c.ScreeningFile = "/a.txt, /b.json" }, ""},
		"an empty path":           {func(c *Config) { c.ScreeningFile = "/a.txt," }, "CORE_SCREENING_FILE"},
		"a path twice":            {func(c *Config) { c.ScreeningFile = "/a.txt,/a.txt" }, "CORE_SCREENING_FILE"},
		"a page to ask":           {func(c *Config) { c.ScreeningContact = "https://example.com/appeals" }, ""},
		"an address to ask":       {func(c *Config) { c.ScreeningContact = "appeals@example.com" }, ""},
		"nowhere to ask":          {func(c *Config) { c.ScreeningContact = "ask us" }, "CORE_SCREENING_CONTACT"},
		"a long contact":          {func(c *Config) { c.ScreeningContact = "https://example.com/" + strings.Repeat("a", 181) }, "CORE_SCREENING_CONTACT"},
		"a list of no age":        {func(c *Config) { c.ScreeningMaxAge = time.Minute }, "CORE_SCREENING_MAX_AGE"},
		"a collector":             {func(c *Config) { c.TracesEndpoint, c.TracesHeaders = "https://collector.example", "a=hunter2" }, ""},
		"a collector of no kind":  {func(c *Config) { c.TracesEndpoint = "collector:4318" }, "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"another sampler":         {func(c *Config) { c.TracesSampler = "sometimes" }, "OTEL_TRACES_SAMPLER"},
		"more than all traces":    {func(c *Config) { c.TracesSamplerArg = 2 }, "OTEL_TRACES_SAMPLER_ARG"},
		"no time to finish":       {func(c *Config) { c.ShutdownGrace = 0 }, "CORE_SHUTDOWN_GRACE"},
		"too much time to finish": {func(c *Config) { c.ShutdownGrace = 6 * time.Minute }, "CORE_SHUTDOWN_GRACE"},
	} {
		config := valid()
		c.change(&config)
		var faults settings.Faults
		config.check(&faults)
		err := faults.Err()
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.fault != "" && (err == nil || !strings.HasPrefix(err.Error(), c.fault+" ") || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s tells a secret: %v", name, err)
		}
	}
}

func TestConfig_SecretsRedacted(t *testing.T) {
	t.Parallel()
	config := valid()
	provided(&config)
	asJSON, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("config", "config", config, "secret", config.GatewaySecret)
	slog.New(slog.NewTextHandler(&log, nil)).Info("config", "config", config, "secret", config.GatewaySecret)
	for _, printed := range []string{
		fmt.Sprint(config), fmt.Sprintf("%v", &config), fmt.Sprintf("%+v", config), fmt.Sprintf("%#v", config), string(asJSON), log.String(),
	} {
		if strings.Contains(printed, "hunter2") || !strings.Contains(printed, "[redacted]") {
			t.Errorf("printed: %s", printed)
		}
	}
}
