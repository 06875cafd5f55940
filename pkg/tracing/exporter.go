package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
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
	// maxQueue bounds the spans that are queued or being exported, about 2 KB each.
	maxQueue = 8192
	// maxBatch bounds the spans of one export.
	maxBatch = 512
	// batchTimeout bounds how long a span waits for a full batch.
	batchTimeout = 2 * time.Second
	// exportTimeout bounds one export, including retries.
	exportTimeout = 10 * time.Second
	// logInterval is the interval between log lines of one outage.
	logInterval = 30 * time.Second
)

// exporter counts the spans that it exports, and logs failures at most once per logInterval.
type exporter struct {
	sdk.SpanExporter
	client *http.Client
	spans  *prometheus.CounterVec
	log    *slog.Logger
	logs   telemetry.Sampler
	// queued counts the spans that the processor has accepted and the exporter has neither sent nor given up.
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

// newProcessor creates the queue to the collector of a valid config. It connects at the first export.
func newProcessor(c Config, spans *prometheus.CounterVec, log *slog.Logger) (sdk.SpanProcessor, error) {
	target, _ := c.target()
	headers, _ := pairs(c.Headers.Reveal())
	client, err := newClient()
	if err != nil {
		return nil, err
	}
	otlp, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(target), otlptracehttp.WithHeaders(headers), otlptracehttp.WithHTTPClient(client),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: exportTimeout,
		}))
	if err != nil {
		return nil, fmt.Errorf("prepare the export of traces: %w", err)
	}
	out := &exporter{SpanExporter: otlp, client: client, spans: spans, log: log, logs: telemetry.Sampler{Every: logInterval}}
	// The SDK has one error handler per process.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(out.warn))
	return processor{out, sdk.NewBatchSpanProcessor(out, sdk.WithMaxQueueSize(maxQueue), sdk.WithMaxExportBatchSize(maxBatch),
		sdk.WithBatchTimeout(batchTimeout), sdk.WithExportTimeout(exportTimeout))}, nil
}

// ExportSpans sends a batch. It returns no error, because the SDK could only log it.
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

// Shutdown ends the exporter and its connections.
func (e *exporter) Shutdown(ctx context.Context) error {
	defer e.client.CloseIdleConnections()
	return e.SpanExporter.Shutdown(ctx)
}

func (e *exporter) warn(err error) {
	if _, due := e.logs.Due(); due {
		e.log.Warn("traces cannot be exported, requests are served on", "error", err)
	}
}

// processor counts the spans that the SDK's full queue drops, because the SDK does not count them.
type processor struct {
	exporter *exporter
	sdk.SpanProcessor
}

// OnEnd queues a span, or drops it if the queue is full.
func (p processor) OnEnd(span sdk.ReadOnlySpan) {
	if p.exporter.queued.Add(1) > maxQueue {
		p.exporter.queued.Add(-1)
		p.exporter.spans.WithLabelValues("dropped").Inc()
		return
	}
	p.SpanProcessor.OnEnd(span)
}
