// Package tracing traces requests through the services with OpenTelemetry spans and W3C Trace Context, and exports sampled spans
// to a collector by OTLP.
//
// It owns the sampling decision, the span attributes of requests and the bounds of the export: a collector that is down or hangs
// costs spans, never a request. While tracing is off there is no Tracer, and no span records.
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
)

const (
	// scope is the instrumentation scope of all spans.
	scope = "intents"
	// FlushTimeout bounds the export of the last spans at shutdown.
	FlushTimeout = 2 * time.Second
)

// Tracer starts the spans of requests. It is safe for concurrent use. A nil Tracer starts none.
type Tracer struct {
	provider     *sdk.TracerProvider
	tracer       trace.Tracer
	sampling     sampling
	byID         sdk.Sampler
	trustClients bool
}

// New creates a tracer, nil if tracing is off. Shutdown must be called.
func New(c Config, log *slog.Logger, metrics prometheus.Registerer) (*Tracer, error) {
	spans := newSpanCounter(c.Service, metrics)
	if !c.On() {
		return nil, nil //nolint:nilnil // a nil Tracer is what is there while tracing is off
	}
	var faults settings.Faults
	if c.Check(&faults); faults.Err() != nil {
		return nil, faults.Err()
	}
	processor, err := newProcessor(c, spans, log)
	if err != nil {
		return nil, err
	}
	sampling, _ := c.sampling()
	byID := sdk.TraceIDRatioBased(sampling.ratio)
	provider := sdk.NewTracerProvider(
		sdk.WithResource(c.resource()),
		sdk.WithSampler(sdk.ParentBased(byID)),
		sdk.WithRawSpanLimits(limits),
		sdk.WithSpanProcessor(processor),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer(scope), sampling: sampling, byID: byID, trustClients: c.TrustClients}, nil
}

// limits bound a span.
var limits = sdk.SpanLimits{AttributeValueLengthLimit: 256, AttributeCountLimit: 32, EventCountLimit: 8}

// resource describes this process.
func (c Config) resource() *resource.Resource {
	given, _ := pairs(c.ResourceAttributes)
	version, _ := telemetry.Build()
	attributes := []attribute.KeyValue{semconv.ServiceVersion(version), semconv.ServiceInstanceID(uuid.NewString())}
	for name, value := range given {
		attributes = append(attributes, attribute.String(name, value))
	}
	// The last of two attributes with the same name wins.
	attributes = append(attributes, semconv.ServiceName(cmp.Or(c.ServiceName, given["service.name"], "intents-"+c.Service)))
	process, _ := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(attributes...))
	return process
}

// Start starts the span of a request that this service received at this time, as a child of the remote span in ctx. If decided is
// set, a service of this system has decided whether the trace is sampled, which a parent-based sampler keeps; otherwise Start decides.
//
// Start samples client traces at random and not by their trace id, as SDKs do: clients choose their ids and could choose ones
// that are always sampled.
func (t *Tracer) Start(ctx context.Context, name string, decided bool, at time.Time) (context.Context, trace.Span) {
	if t == nil {
		return ctx, trace.SpanFromContext(ctx)
	}
	trusted := decided || t.trustClients
	if parent := trace.SpanContextFromContext(ctx); parent.IsValid() && (!trusted || !t.sampling.parentBased) {
		sampled := t.samples(parent.TraceID(), trusted)
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent.WithTraceFlags(parent.TraceFlags().WithSampled(sampled)))
	}
	return t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(at))
}

// samples decides on a trace: by its id if that was not chosen by a client, so that all services decide alike.
func (t *Tracer) samples(id trace.TraceID, trusted bool) bool {
	if trusted {
		return t.byID.ShouldSample(sdk.SamplingParameters{TraceID: id}).Decision == sdk.RecordAndSample
	}
	return rand.Float64() < t.sampling.ratio //nolint:gosec // no secret
}

// Shutdown exports the remaining spans, until ctx ends or for FlushTimeout. No span may end after it. It does not wait for an export that
// does not end by then.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, FlushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("end the export of traces: %w", err)
	}
	return nil
}
