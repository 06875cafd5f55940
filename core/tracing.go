package main

import "intents.internal/pkg/tracing"

// tracing are the settings in the words of package tracing.
func (c Config) tracing() tracing.Config {
	return tracing.Config{
		Service:            "core",
		Endpoint:           c.TracesEndpoint,
		Headers:            c.TracesHeaders,
		Sampler:            c.TracesSampler,
		Ratio:              c.TracesSamplerArg,
		ServiceName:        c.TracesServiceName,
		ResourceAttributes: c.TracesResource,
	}
}
