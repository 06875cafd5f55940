package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// maxWaiting bounds the spans that wait for the collector or are on their way there, about 2 KB each.
	maxWaiting = 8192
	// maxBatch bounds the spans of one export.
	maxBatch = 512
	// exportEvery is how long a span waits for others at most.
	exportEvery = 2 * time.Second
	// exportTimeout bounds one export, its repetitions included.
	exportTimeout = 10 * time.Second
	// logEvery spaces the log lines of one outage.
	logEvery = 30 * time.Second
)

// spanCounts tells what became of spans.
type spanCounts struct{ exported, failed, dropped prometheus.Counter }

func newSpanCounts(service string, registry prometheus.Registerer) spanCounts {
	counts := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "intents_" + service + "_spans_total",
		Help: "Spans of sampled requests by what became of them: exported; failed, where the collector refused them or did not answer; " +
			"dropped, where too many waited for it. A rise of failed or dropped means that traces have gaps; requests are unaffected.",
	}, []string{"outcome"})
	return spanCounts{
		exported: counts.WithLabelValues("exported"), failed: counts.WithLabelValues("failed"), dropped: counts.WithLabelValues("dropped"),
	}
}

// queue lets spans wait for their export without ever letting a request wait. The SDK's own queue drops what does not
// fit without telling; this one counts, and lets no more in than fits.
type queue struct {
	sdk.SpanProcessor
	out     *outlet
	dropped prometheus.Counter
}

func newQueue(exporter sdk.SpanExporter, counts spanCounts, log *slog.Logger) sdk.SpanProcessor {
	out := &outlet{SpanExporter: exporter, counts: counts, log: log}
	// The SDK tells its own troubles to one handler for the whole process.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { out.complain("tracing trouble", err) }))
	return &queue{
		SpanProcessor: sdk.NewBatchSpanProcessor(out,
			sdk.WithMaxQueueSize(maxWaiting), sdk.WithMaxExportBatchSize(maxBatch),
			sdk.WithBatchTimeout(exportEvery), sdk.WithExportTimeout(exportTimeout)),
		out:     out,
		dropped: counts.dropped,
	}
}

// OnEnd takes a span that has ended, or drops it.
func (q *queue) OnEnd(span sdk.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	if q.out.waiting.Add(1) > maxWaiting {
		q.out.waiting.Add(-1)
		q.dropped.Inc()
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// outlet counts what leaves, and logs now and then why it does not.
type outlet struct {
	sdk.SpanExporter
	counts spanCounts
	// waiting are the spans let in and not yet sent or given up.
	waiting atomic.Int64
	logged  atomic.Int64 // when the last line was written, in Unix nanoseconds
	log     *slog.Logger
}

// ExportSpans sends a batch. It has no error for the SDK: nothing more can be done.
func (o *outlet) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	defer o.waiting.Add(-int64(len(spans)))
	if err := o.SpanExporter.ExportSpans(ctx, spans); err != nil {
		o.counts.failed.Add(float64(len(spans)))
		o.complain("traces cannot be exported, requests are served on", err)
		return nil
	}
	o.counts.exported.Add(float64(len(spans)))
	return nil
}

func (o *outlet) complain(message string, err error) {
	now, last := time.Now().UnixNano(), o.logged.Load()
	if now-last >= int64(logEvery) && o.logged.CompareAndSwap(last, now) {
		o.log.Warn(message, "error", err) //nolint:sloglint // one of two constants
	}
}
