package command

import "intents.internal/pkg/tracing"

// tracing returns the settings of package tracing.
func (c Config) tracing() tracing.Config {
	return tracing.Config{
		Service:            "gateway",
		Endpoint:           c.TracesEndpoint,
		Headers:            c.TracesHeaders,
		Sampler:            c.TracesSampler,
		Ratio:              c.TracesSamplerArg,
		TrustClients:       c.TracesTrustClients,
		ServiceName:        c.TracesServiceName,
		ResourceAttributes: c.TracesResource,
	}
}
