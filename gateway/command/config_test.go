package command_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/command"
)

func TestConfig_AllFaults(t *testing.T) {
	t.Parallel()
	_, err := command.ParseConfig(map[string]string{
		"GATEWAY_LISTEN":             "8080",
		"GATEWAY_CORE_URL":           "http://core/path",
		"GATEWAY_CORE_SECRET":        "short",
		"GATEWAY_REDIS_URL":          "http://user:hunter2@redis",
		"GATEWAY_LIMIT_FALLBACK":     "maybe",
		"GATEWAY_READ_TIMEOUT":       "10",
		"GATEWAY_KEY_LOOKUP_TIMEOUT": "2s",
		"GATEWAY_USAGE_INTERVAL":     "500ms",
		"GATEWAY_USAGE_BACKLOG":      "999",
		"GATEWAY_MAX_POLLS":          "0",
		"GATEWAY_TRUSTED_PROXIES":    "10.0.0.0/8,everyone",
		"GATEWAY_MAX_CONN":           "7",
		"GATEWAY_SERVICE_HOST":       "10.0.0.1",
	})
	want := []string{
		`there is no setting GATEWAY_MAX_CONN; did you mean GATEWAY_MAX_CONNS?`,
		`GATEWAY_LIMIT_FALLBACK cannot be read: must be local, open or closed, not "maybe"`,
		`GATEWAY_READ_TIMEOUT cannot be read: unable to parse duration: time: missing unit in duration "10"`,
		`GATEWAY_TRUSTED_PROXIES cannot be read: netip.ParsePrefix("everyone"): no '/'`,
		`GATEWAY_LISTEN must be host:port, not "8080"`,
		`GATEWAY_CORE_URL must be http://host:port or https://host:port, or several with commas between; URL 1 is not`,
		`GATEWAY_CORE_SECRET must have at least 32 characters`,
		`GATEWAY_REDIS_URL must be a URL such as redis://127.0.0.1:6379/0`,
		`GATEWAY_KEY_LOOKUP_TIMEOUT must be 10ms to 1s, not 2s`,
		`GATEWAY_USAGE_INTERVAL must be 1s to 1m, not 500ms`,
		`GATEWAY_USAGE_BACKLOG must be at least 1000, not 999`,
		`GATEWAY_MAX_POLLS must be at least 1, not 0`,
	}
	if diff := cmp.Diff(want, strings.Split(fmt.Sprint(err), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestConfig_TrustedProxies(t *testing.T) {
	t.Parallel()
	for given, trusted := range map[string]bool{
		"10.0.0.0/8,fd00::/8": true, "0.0.0.0/1": true, "0.0.0.0/0": false, "::/0": false, "10.0.0.0/8,::/0": false, "203.0.113.7/0": false,
	} {
		_, err := command.ParseConfig(map[string]string{"GATEWAY_CORE_SECRET": strings.Repeat("s", 32), "GATEWAY_TRUSTED_PROXIES": given})
		if (err == nil) != trusted || !trusted && !strings.HasPrefix(err.Error(), "GATEWAY_TRUSTED_PROXIES must not have 0.0.0.0/0 or ::/0") {
			t.Errorf("%s: %v", given, err)
		}
	}
}

// AWS ALB and nginx close idle connections after 60 s, and must be the side that closes.
func TestConfig_IdleTimeout(t *testing.T) {
	t.Parallel()
	config, err := command.ParseConfig(map[string]string{"GATEWAY_CORE_SECRET": strings.Repeat("s", 32)})
	if err != nil || config.IdleTimeout < 70*time.Second {
		t.Errorf("%s, %v", config.IdleTimeout, err)
	}
}

func TestConfig_Cores(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"http://a:1":                            "",
		"http://a:1,https://b, http://[::1]:2/": "",
		"":                                      "",
		"http://a:1,":                           "GATEWAY_CORE_URL must be http://host:port or https://host:port, or several with commas between; URL 2 is not",
		"http://a:1,ftp://b":                    "GATEWAY_CORE_URL must be http://host:port or https://host:port, or several with commas between; URL 2 is not",
		"http://user:hunter2@a:1":               "GATEWAY_CORE_URL must be http://host:port or https://host:port, or several with commas between; URL 1 is not",
		"http://a:1,http://b,http://a:1/":       "GATEWAY_CORE_URL names one core twice: URLs 1 and 3",
		"https://a,http://a:443":                "GATEWAY_CORE_URL names one core twice: URLs 1 and 2",
		strings.Repeat("http://a,", 64) + "http://a": "GATEWAY_CORE_URL must have at most 64 URLs, not 65",
	} {
		_, err := command.ParseConfig(map[string]string{"GATEWAY_CORE_SECRET": strings.Repeat("s", 32), "GATEWAY_CORE_URL": given})
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("%s: %s, want %q", given, got, want)
		}
	}
}

func TestConfig_Tracing(t *testing.T) {
	t.Parallel()
	_, err := command.ParseConfig(map[string]string{
		"GATEWAY_CORE_SECRET":         strings.Repeat("s", 32),
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:hunter2@collector",
		"OTEL_EXPORTER_OTLP_HEADERS":  "hunter2",
		"OTEL_TRACES_SAMPLER":         "sometimes",
		"OTEL_TRACES_SAMPLER_ARG":     "1.5",
		"OTEL_RESOURCE_ATTRIBUTES":    "a=b,c",
	})
	want := []string{
		`OTEL_EXPORTER_OTLP_ENDPOINT must be a URL such as http://127.0.0.1:4318; put credentials into OTEL_EXPORTER_OTLP_HEADERS`,
		`OTEL_EXPORTER_OTLP_HEADERS must be name=value, comma separated and percent-encoded; pair 1 is not`,
		`OTEL_TRACES_SAMPLER must be always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or parentbased_traceidratio, not "sometimes"`,
		`OTEL_TRACES_SAMPLER_ARG must be 0 to 1, not 1.5`,
		`OTEL_RESOURCE_ATTRIBUTES must be name=value, comma separated and percent-encoded; pair 2 is not`,
	}
	if diff := cmp.Diff(want, strings.Split(fmt.Sprint(err), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestConfig_Redis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mode, url, want string }{
		{"single", "redis://:hunter2@a:1/0", ""},
		{"cluster", "redis://:hunter2@a:1?addr=b:2", ""},
		{"sentinel", "redis://:hunter2@a:1/0?addr=b:2&master_name=m&password=hunter2", ""},
		{"ring", "redis://:hunter2@a:1", `GATEWAY_REDIS_MODE cannot be read: must be single, cluster or sentinel, not "ring"`},
		{"single", "redis://:hunter2@a:1?addr=b:2", "GATEWAY_REDIS_URL has addr or master_name, which are for the modes cluster and sentinel: " +
			"set the mode, or leave them out"},
		{"cluster", "redis://:hunter2@a:1/3", "GATEWAY_REDIS_URL must name no database: a cluster has only database 0"},
		{"sentinel", "redis://:hunter2@a:1", "GATEWAY_REDIS_URL must, for sentinels, be a URL such as " +
			"redis://sentinel1:26379/0?addr=sentinel2:26379&addr=sentinel3:26379&master_name=mymaster, with redis:// or rediss://"},
	} {
		_, err := command.ParseConfig(map[string]string{
			"GATEWAY_CORE_SECRET": strings.Repeat("s", 32), "GATEWAY_REDIS_MODE": c.mode, "GATEWAY_REDIS_URL": c.url,
		})
		if got := fmt.Sprint(err); got != c.want && (c.want != "" || err != nil) {
			t.Errorf("%s %s: %s, want %q", c.mode, c.url, got, c.want)
		}
	}
}

func TestConfig_SecretsRedacted(t *testing.T) {
	t.Parallel()
	config, err := command.ParseConfig(map[string]string{
		"GATEWAY_CORE_SECRET": strings.Repeat("hunter2", 5),
		"GATEWAY_REDIS_URL":   "redis://:hunter2@127.0.0.1:6379/0",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, config); strings.Contains(text, "hunter2") {
			t.Errorf("%s shows a secret: %s", verb, text)
		}
	}
}
