package intents_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/tracingtest"
	"intents.internal/pkg/tracing"
)

// tracedStore is a store that shows its queries, and what makes the spans of requests to it. stop sends the last of them.
func tracedStore(t *testing.T) (store *rooms.Rooms, tracer *tracing.Tracer, collector *tracingtest.Collector) {
	t.Helper()
	tracer, collector = tracingtest.Tracer(t, "core")
	patient := pgtest.Patient()
	patient.Traced = true
	store = pgtest.OpenWith(t, pgtest.Database(t), patient)
	return store, tracer, collector
}

// Requests that share a commit have a span each.
func TestTrace_SharedCommit(t *testing.T) {
	t.Parallel()
	store, tracer, collector := tracedStore(t)
	known := pgtest.LoadRegistry(t, store)
	release := holdFlushers(t, store, known)
	const requests = 20
	parents := map[string]bool{}
	var all sync.WaitGroup
	for range requests {
		_, span := tracer.Start(t.Context(), "POST /v2/transfers", false, time.Now())
		parents[span.SpanContext().SpanID().String()] = true
		intent := pgtest.NewIntent(t, known, uuid.New(), pgtest.TransferBody)
		all.Go(func() {
			defer span.End()
			if _, err := store.Intents.InsertTransfer(trace.ContextWithSpan(t.Context(), span), intent, intents.Idempotency{}); err != nil {
				t.Error(err)
			}
		})
	}
	release(requests)
	all.Wait()
	if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, s := range collector.Spans() {
		if s.Name == "INSERT transfers" && !s.Failed && s.Attributes["db.system.name"] == "postgresql" {
			delete(parents, s.Parent)
		}
	}
	if len(parents) > 0 {
		t.Errorf("%d of %d requests have no span of their insert", len(parents), requests)
	}
}

// A failure has its SQLSTATE, and no message, which could repeat a value.
func TestTrace_FailedQuery(t *testing.T) {
	t.Parallel()
	store, tracer, collector := tracedStore(t)
	if _, err := store.Pool().ExecContext(t.Context(), "ALTER TABLE transfers RENAME COLUMN reference TO elsewhere"); err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), "GET /v2/transfers", false, time.Now())
	for _, err := range store.Intents.Transfers(trace.ContextWithSpan(t.Context(), span), uuid.New(), intents.TransferFilter{Reference: "secret"}) {
		if err == nil {
			t.Fatal("the list is read")
		}
	}
	if _, err := store.Intents.Transfer(trace.ContextWithSpan(t.Context(), span), uuid.New(), uuid.New()); err == nil {
		t.Fatal("there is an intent")
	}
	span.End()
	if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, s := range collector.Spans() {
		if s.Failed {
			failed++
			if s.Name != "SELECT transfers" || s.Attributes["error.type"] != "42703" || s.Attributes["db.response.status_code"] != "42703" {
				t.Errorf("%+v", s)
			}
		}
	}
	if text := tracingtest.Text(collector.Spans()); failed == 0 || strings.Contains(text, "secret") {
		t.Errorf("%d failed:\n%s", failed, text)
	}
}

// What nobody traces makes no span, also where queries are traced.
func TestTrace_NoRequest(t *testing.T) {
	t.Parallel()
	store, tracer, collector := tracedStore(t)
	known := pgtest.LoadRegistry(t, store)
	pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody)
	if _, err := store.Intents.ExpireTransfers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if spans := collector.Spans(); len(spans) != 0 {
		t.Errorf("spans:\n%s", tracingtest.Text(spans))
	}
}
