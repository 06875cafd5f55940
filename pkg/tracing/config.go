package tracing

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"intents.internal/pkg/telemetry"
)

// The samplers there are, in OpenTelemetry's words. Each believes another service of this system, and decides for the
// requests of clients itself.
const (
	alwaysOn  = "parentbased_always_on"
	alwaysOff = "parentbased_always_off"
	byRatio   = "parentbased_traceidratio"
)

// Config is how a service traces, as its operator set it. The zero value is off.
type Config struct {
	// Service is the name of the program, which begins the names of its metrics.
	Service string
	// Endpoint is the base URL of the collector's OTLP over HTTP; spans go to /v1/traces below it. Empty for off.
	Endpoint string
	// Headers go with every export, name=value, comma separated and percent-encoded.
	Headers telemetry.Secret
	// Sampler is parentbased_traceidratio, parentbased_always_on or parentbased_always_off.
	Sampler string
	// Ratio is how many of 1 traces parentbased_traceidratio takes, 0 to 1.
	Ratio float64
	// TrustClients believes the sampled flag that a client sends. Else whoever sends it could have everything sampled.
	TrustClients bool
	// ServiceName is the resource's service.name; empty for that of ResourceAttributes, else intents- and Service.
	ServiceName string
	// ResourceAttributes describe the process, name=value, comma separated and percent-encoded.
	ResourceAttributes string
}

// On reports whether spans are made.
func (c Config) On() bool { return c.Endpoint != "" }

// Fault is what is wrong with one variable.
type Fault struct{ Variable, Text string }

// Faults are all there are. They do not repeat what may be secret.
func (c Config) Faults() []Fault {
	var faults []Fault
	add := func(variable, text string) { faults = append(faults, Fault{variable, text}) }
	if _, err := c.target(); err != nil {
		add("OTEL_EXPORTER_OTLP_ENDPOINT", err.Error())
	}
	if _, err := pairs(c.Headers.Reveal()); err != nil {
		add("OTEL_EXPORTER_OTLP_HEADERS", err.Error())
	}
	if _, known := c.share(); !known {
		add("OTEL_TRACES_SAMPLER", fmt.Sprintf("must be %s, %s or %s, not %q", byRatio, alwaysOn, alwaysOff, c.Sampler))
	}
	if !(c.Ratio >= 0 && c.Ratio <= 1) { // NaN is neither
		add("OTEL_TRACES_SAMPLER_ARG", fmt.Sprintf("must be 0 to 1, not %v", c.Ratio))
	}
	if _, err := pairs(c.ResourceAttributes); err != nil {
		add("OTEL_RESOURCE_ATTRIBUTES", err.Error())
	}
	return faults
}

// share is how many of 1 traces are taken where nobody has decided yet; known is false for a sampler that there is not.
func (c Config) share() (ratio float64, known bool) {
	switch c.Sampler {
	case alwaysOn:
		return 1, true
	case alwaysOff:
		return 0, true
	case byRatio, "":
		return c.Ratio, true
	default:
		return 0, false
	}
}

// target is the URL that spans are sent to, empty for off. The error does not repeat what was given, which may hold a
// password.
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

// pairs reads name=value, comma separated and percent-encoded, as OpenTelemetry writes headers and attributes.
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

// name is the resource's service.name.
func (c Config) name(attributes map[string]string) string {
	return cmp.Or(c.ServiceName, attributes["service.name"], "intents-"+c.Service)
}
