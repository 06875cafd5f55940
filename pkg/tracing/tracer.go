// Package tracing follows requests through the services: it makes OpenTelemetry spans, reads and writes the W3C trace
// context between processes, and sends what was sampled to a collector by OTLP.
//
// It owns what a span may tell (attributes.go), who decides what is sampled, and the bounds of the export: a collector that
// is away or hangs costs spans, never a request. While tracing is off there is no Tracer and every Span is the zero one,
// which does nothing and costs nothing.
package tracing

import (
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

	"intents.internal/pkg/telemetry"
)

const (
	// scope is the instrumentation scope of all spans.
	scope = "intents"
	// FlushTimeout bounds the wait for the last spans to leave when a service ends.
	FlushTimeout = 2 * time.Second
)

// Tracer begins the spans of requests. It is safe for concurrent use; nil begins none.
type Tracer struct {
	provider     *sdk.TracerProvider
	tracer       trace.Tracer
	ratio        float64
	trustClients bool
}

// New makes a tracer, nil where tracing is off. It connects to nobody until there are spans. Shutdown must be called.
func New(c Config, log *slog.Logger, metrics prometheus.Registerer) (*Tracer, error) {
	counts := newSpanCounts(c.Service, metrics)
	if !c.On() {
		return nil, nil //nolint:nilnil // a nil Tracer is what is there while tracing is off
	}
	if faults := c.Faults(); len(faults) > 0 {
		return nil, fmt.Errorf("%s %s", faults[0].Variable, faults[0].Text)
	}
	exporter, err := newExporter(c)
	if err != nil {
		return nil, err
	}
	about, err := c.resource()
	if err != nil {
		return nil, err
	}
	ratio, _ := c.share()
	provider := sdk.NewTracerProvider(
		sdk.WithResource(about),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(ratio))),
		sdk.WithRawSpanLimits(limits),
		sdk.WithSpanProcessor(newQueue(exporter, counts, log)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer(scope), ratio: ratio, trustClients: c.TrustClients}, nil
}

// limits bound a span. None of ours comes near, but for the links of a span that many requests share.
var limits = sdk.SpanLimits{
	AttributeValueLengthLimit: 256, AttributeCountLimit: 32, EventCountLimit: 8, LinkCountLimit: 256,
	AttributePerEventCountLimit: 8, AttributePerLinkCountLimit: 8,
}

// resource describes this process.
func (c Config) resource() (*resource.Resource, error) {
	given, err := pairs(c.ResourceAttributes)
	if err != nil {
		return nil, err
	}
	version, _ := telemetry.Build()
	attributes := []attribute.KeyValue{semconv.ServiceVersion(version), semconv.ServiceInstanceID(uuid.NewString())}
	for name, value := range given {
		attributes = append(attributes, attribute.String(name, value))
	}
	attributes = append(attributes, semconv.ServiceName(c.name(given))) // of two that have one name the later counts
	about, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(attributes...))
	if err != nil && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("describe this process for traces: %w", err)
	}
	return about, nil
}

// Serve begins the span of a request that this service answers, which came at this time, below what came with it. decided
// says that a service of this system has decided whether the trace is sampled; else it is decided here.
//
// For a client's trace that is done by lot and not by its id, as is usual: clients choose their ids, and could choose those
// that are always taken.
func (t *Tracer) Serve(name string, parent Parent, decided bool, at time.Time) Span {
	if t == nil {
		return Span{}
	}
	ctx := context.Background()
	if parent.IsValid() {
		from := parent.context
		if !decided && !t.trustClients {
			sampled := rand.Float64() < t.ratio //nolint:gosec // no secret
			from = from.WithTraceFlags(from.TraceFlags().WithSampled(sampled))
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, from)
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(Server), trace.WithTimestamp(at))
	return Span{ctx: ctx, span: span}
}

// Shutdown sends what is left and ends, at the latest when ctx does or after FlushTimeout. No span may end after it.
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
