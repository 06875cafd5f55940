package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

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
	// Sampler is parentbased_traceidratio, parentbased_always_on or parentbased_always_off; empty: the first.
	Sampler string
	// Ratio is the share of traces that parentbased_traceidratio samples, 0 to 1.
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

// Fault is an error in one variable.
type Fault struct{ Variable, Text string }

// Faults returns all faults. They do not contain values that may be secret.
func (c Config) Faults() []Fault {
	var faults []Fault
	check := func(variable string, err error) {
		if err != nil {
			faults = append(faults, Fault{variable, err.Error()})
		}
	}
	_, err := c.target()
	check("OTEL_EXPORTER_OTLP_ENDPOINT", err)
	_, err = pairs(c.Headers.Reveal())
	check("OTEL_EXPORTER_OTLP_HEADERS", err)
	_, err = c.ratio()
	check("OTEL_TRACES_SAMPLER", err)
	if !(c.Ratio >= 0 && c.Ratio <= 1) { // NaN is neither
		check("OTEL_TRACES_SAMPLER_ARG", fmt.Errorf("must be 0 to 1, not %v", c.Ratio))
	}
	_, err = pairs(c.ResourceAttributes)
	check("OTEL_RESOURCE_ATTRIBUTES", err)
	return faults
}

// Validate returns all faults as one error.
func (c Config) Validate() error {
	var errs []error
	for _, f := range c.Faults() {
		errs = append(errs, fmt.Errorf("%s %s", f.Variable, f.Text))
	}
	return errors.Join(errs...)
}

// ratio returns the share of traces that the sampler takes if the parent has not decided.
func (c Config) ratio() (float64, error) {
	switch c.Sampler {
	case "parentbased_always_on":
		return 1, nil
	case "parentbased_always_off":
		return 0, nil
	case "parentbased_traceidratio", "":
		return c.Ratio, nil
	default:
		return 0, fmt.Errorf("must be parentbased_traceidratio, parentbased_always_on or parentbased_always_off, not %q", c.Sampler)
	}
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
