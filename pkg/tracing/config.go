package tracing

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
)

// Config configures the tracing of a service. The zero value is off.
type Config struct {
	// Service is the name of the program and the prefix of its metrics.
	Service string
	// Endpoint is the base URL of the collector for OTLP over HTTP; spans are sent to /v1/traces below it. Empty: off.
	Endpoint string
	// Headers are sent with every export: name=value, comma separated and percent-encoded.
	Headers telemetry.Secret
	// Sampler is one of the six of the OpenTelemetry specification; empty: parentbased_traceidratio.
	Sampler string
	// Ratio is the share of traces that traceidratio and parentbased_traceidratio sample, 0 to 1.
	Ratio float64
	// TrustClients accepts the sampled flag that a client sends. With it a client can have every request sampled.
	TrustClients bool
	// ServiceName is the resource's service.name. Empty: that of ResourceAttributes, else intents- and Service.
	ServiceName string
	// ResourceAttributes describe the process, name=value, comma separated and percent-encoded.
	ResourceAttributes string
}

// On reports whether tracing is on.
func (c Config) On() bool { return c.Endpoint != "" }

// Check adds all faults. They do not contain values that may be secret.
func (c Config) Check(faults *settings.Faults) {
	check := func(variable string, err error) {
		if err != nil {
			faults.Add(variable, "%v", err)
		}
	}
	_, err := c.target()
	check("OTEL_EXPORTER_OTLP_ENDPOINT", err)
	_, err = pairs(c.Headers.Reveal())
	check("OTEL_EXPORTER_OTLP_HEADERS", err)
	_, err = c.sampling()
	check("OTEL_TRACES_SAMPLER", err)
	if !(c.Ratio >= 0 && c.Ratio <= 1) { // NaN is neither
		check("OTEL_TRACES_SAMPLER_ARG", fmt.Errorf("must be 0 to 1, not %v", c.Ratio))
	}
	_, err = pairs(c.ResourceAttributes)
	check("OTEL_RESOURCE_ATTRIBUTES", err)
	if c.On() {
		tlsConfig(faults)
	}
}

// sampling is what a sampler of the OpenTelemetry specification does.
type sampling struct {
	// ratio is the share of traces that are sampled where nobody has decided.
	ratio float64
	// parentBased keeps the decision of a gateway, and of a client that is trusted. Otherwise this service decides alone.
	parentBased bool
}

// samplers are the values of OTEL_TRACES_SAMPLER that every OpenTelemetry SDK has.
var samplers = []string{
	"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
}

func (c Config) sampling() (sampling, error) {
	name := cmp.Or(c.Sampler, "parentbased_traceidratio")
	if !slices.Contains(samplers, name) {
		return sampling{}, fmt.Errorf("must be %s or %s, not %q", strings.Join(samplers[:5], ", "), samplers[5], name)
	}
	name, parentBased := strings.CutPrefix(name, "parentbased_")
	return sampling{ratio: map[string]float64{"always_on": 1, "always_off": 0, "traceidratio": c.Ratio}[name], parentBased: parentBased}, nil
}

// target returns the URL of exports, empty for off. The error does not contain the endpoint, which may hold a password.
func (c Config) target() (string, error) {
	if !c.On() {
		return "", nil
	}
	base, err := url.Parse(c.Endpoint)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil ||
		base.RawQuery != "" || base.Fragment != "" {
		return "", errors.New("must be a URL such as http://127.0.0.1:4318; put credentials into OTEL_EXPORTER_OTLP_HEADERS")
	}
	return base.JoinPath("v1", "traces").String(), nil
}

// pairs parses name=value, comma separated and percent-encoded, the format of OpenTelemetry for headers and attributes.
func pairs(text string) (map[string]string, error) {
	all := map[string]string{}
	for n, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || name == "" || err != nil {
			return nil, fmt.Errorf("must be name=value, comma separated and percent-encoded; pair %d is not", n+1)
		}
		all[name] = decoded
	}
	return all, nil
}
