package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"intents.internal/pkg/telemetry"
)

const (
	// maxQueue bounds the spans that wait for the collector or are on their way there, about 2 KB each.
	maxQueue = 8192
	// maxBatch bounds the spans of one export.
	maxBatch = 512
	// batchTimeout is how long a span waits for others at most.
	batchTimeout = 2 * time.Second
	// exportTimeout bounds one export, its retries included.
	exportTimeout = 10 * time.Second
	// logInterval is the minimum time between two log lines of one outage.
	logInterval = 30 * time.Second
)

// exporter counts the spans that it exports, and logs failures, sampled.
type exporter struct {
	sdk.SpanExporter
	spans *prometheus.CounterVec
	log   *slog.Logger
	logs  telemetry.Sampler
	// queued are the spans that the processor has taken and the exporter has not yet sent or given up.
	queued atomic.Int64
}

func newSpanCounter(service string, registry prometheus.Registerer) *prometheus.CounterVec {
	spans := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "intents_" + service + "_spans_total",
		Help: "Spans of sampled requests by what became of them: exported; failed, where the collector refused them or did not answer; " +
			"dropped, where too many waited for it. A rise of failed or dropped means that traces have gaps; requests are unaffected.",
	}, []string{"outcome"})
	for _, outcome := range []string{"exported", "failed", "dropped"} {
		spans.WithLabelValues(outcome)
	}
	return spans
}

// newProcessor queues spans for the collector of a config without faults. It connects once there are any.
func newProcessor(c Config, spans *prometheus.CounterVec, log *slog.Logger) (sdk.SpanProcessor, error) {
	target, _ := c.target()
	headers, _ := pairs(c.Headers.Reveal())
	otlp, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(target), otlptracehttp.WithHeaders(headers), otlptracehttp.WithTimeout(exportTimeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: exportTimeout,
		}))
	if err != nil {
		return nil, fmt.Errorf("prepare the export of traces: %w", err)
	}
	out := &exporter{SpanExporter: otlp, spans: spans, log: log, logs: telemetry.Sampler{Every: logInterval}}
	// The SDK has one handler of its errors for the whole process.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(out.warn))
	return processor{out, sdk.NewBatchSpanProcessor(out, sdk.WithMaxQueueSize(maxQueue), sdk.WithMaxExportBatchSize(maxBatch),
		sdk.WithBatchTimeout(batchTimeout), sdk.WithExportTimeout(exportTimeout))}, nil
}

// ExportSpans sends a batch. It returns no error to the SDK, which could only log it.
func (e *exporter) ExportSpans(ctx context.Context, batch []sdk.ReadOnlySpan) error {
	defer e.queued.Add(-int64(len(batch)))
	outcome := "exported"
	if err := e.SpanExporter.ExportSpans(ctx, batch); err != nil {
		outcome = "failed"
		e.warn(err)
	}
	e.spans.WithLabelValues(outcome).Add(float64(len(batch)))
	return nil
}

func (e *exporter) warn(err error) {
	if _, due := e.logs.Due(); due {
		e.log.Warn("traces cannot be exported, requests are served on", "error", err)
	}
}

// processor counts the spans that the SDK's queue has no room for: the SDK drops them without a count.
type processor struct {
	exporter *exporter
	sdk.SpanProcessor
}

// OnEnd queues a span, or drops it.
func (p processor) OnEnd(span sdk.ReadOnlySpan) {
	if p.exporter.queued.Add(1) > maxQueue {
		p.exporter.queued.Add(-1)
		p.exporter.spans.WithLabelValues("dropped").Inc()
		return
	}
	p.SpanProcessor.OnEnd(span)
}
