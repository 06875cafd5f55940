package tracing

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"intents.internal/pkg/telemetry"
)

// exporter sends spans to the collector, with the headers that were set last.
type exporter struct {
	target string
	now    atomic.Pointer[sdk.SpanExporter]
}

func newExporter(c Config) (*exporter, error) {
	target, err := c.target()
	if err != nil {
		return nil, err
	}
	e := &exporter{target: target}
	return e, e.setHeaders(c.Headers)
}

// setHeaders has the next export bear them. The SDK's exporter keeps its own for good, so there is another one then; the one before
// is not shut down, which would cut its export off, and holds nothing of its own.
func (e *exporter) setHeaders(text telemetry.Secret) error {
	headers, err := pairs(text.Reveal())
	if err != nil {
		return err
	}
	fresh, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(e.target),
		otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithTimeout(exportTimeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: exportTimeout,
		}))
	if err != nil {
		return fmt.Errorf("prepare the export of traces: %w", err)
	}
	var now sdk.SpanExporter = fresh
	e.now.Store(&now)
	return nil
}

// ExportSpans implements sdk.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	return (*e.now.Load()).ExportSpans(ctx, spans)
}

// Shutdown implements sdk.SpanExporter.
func (e *exporter) Shutdown(ctx context.Context) error { return (*e.now.Load()).Shutdown(ctx) }
