package tracing_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/settings"
	"intents.internal/pkg/testkit/endless"
	"intents.internal/pkg/testkit/tracingtest"
	"intents.internal/pkg/tracing"
)

// A collector that hangs costs spans: nobody waits for it, memory stays bounded, and what is lost is counted.
func TestTracer_CollectorHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	collector := tracingtest.Start(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	b := &bench{}
	tracer := newTracer(t, tracing.Config{Endpoint: collector.URL}, b)
	began := time.Now()
	const spans = 20_000
	for range spans {
		_, span := tracer.Start(t.Context(), "test", false, began)
		span.End()
	}
	if elapsed := time.Since(began); elapsed > 5*time.Second {
		t.Errorf("%d spans took %s", spans, elapsed)
	}
	if dropped := b.count(t, "dropped"); dropped < spans-8192-1 || dropped >= spans {
		t.Errorf("%g of %d spans counted as dropped, want all that do not fit in 8192", dropped, spans)
	}
	ending := time.Now()
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if elapsed := time.Since(ending); elapsed > tracing.FlushTimeout+3*time.Second {
		t.Errorf("the end took %s, which should take %s at most", elapsed, tracing.FlushTimeout)
	}
}

// A collector that refuses is logged now and then, and what it refused is counted.
func TestTracer_CollectorRefuses(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	b := &bench{}
	tracer := newTracer(t, tracing.Config{Endpoint: collector.URL}, b)
	for range 2000 {
		_, span := tracer.Start(t.Context(), "test", false, time.Now())
		span.End()
	}
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if failed := b.count(t, "failed"); failed != 2000 {
		t.Errorf("%g spans counted as failed, want 2000", failed)
	}
	if lines := strings.Count(b.log.String(), "traces cannot be exported"); lines != 1 {
		t.Errorf("%d lines, want 1:\n%s", lines, b.log.String())
	}
}

// A collector whose answer never ends, a 101 among them, does not keep a service from ending.
func TestTracer_EndlessResponses(t *testing.T) {
	t.Parallel()
	endless.WantEnd(t, endless.HTTP, func(ctx context.Context, address string) {
		tracer := newTracer(t, tracing.Config{Endpoint: "http://" + address}, nil)
		_, span := tracer.Start(ctx, "test", false, time.Now())
		span.End()
		if err := tracer.Shutdown(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
}

// Exports go on after a collector, or a proxy before it, has answered 101 and kept the connection.
func TestTracer_SwitchingProtocols(t *testing.T) {
	t.Parallel()
	switched := make(chan struct{})
	collector := tracingtest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n")
		close(switched)
	})
	b := &bench{}
	tracer := newTracer(t, tracing.Config{Endpoint: collector.URL}, b)
	_, span := tracer.Start(t.Context(), "lost", false, time.Now())
	span.End()
	<-switched
	collector.Answer(nil)
	_, span = tracer.Start(t.Context(), "exported", false, time.Now())
	span.End()
	collector.Await(t, span.SpanContext().TraceID().String(), "a span after the 101", func(spans []tracingtest.Span) bool { return len(spans) == 1 })
	if failed := b.count(t, "failed"); failed != 1 {
		t.Errorf("%g spans counted as failed, want 1", failed)
	}
}

// The collector's certificate, and the one that is shown to it, are those of OpenTelemetry's variables.
func TestTracer_TLS(t *testing.T) {
	received := &tracingtest.Collector{}
	server := httptest.NewUnstartedServer(received)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	pair := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := filepath.Join(t.TempDir(), "certificate"), filepath.Join(t.TempDir(), "key")
	writePEM(t, certificate, "CERTIFICATE", pair.Certificate[0])
	writePEM(t, key, "PRIVATE KEY", der)
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", key) // that of traces takes precedence
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", certificate)
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificate)
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", key)
	tracer := newTracer(t, tracing.Config{Endpoint: server.URL}, nil)
	_, span := tracer.Start(t.Context(), "test", false, time.Now())
	span.End()
	received.Await(t, span.SpanContext().TraceID().String(), "a span over TLS", func(spans []tracingtest.Span) bool { return len(spans) == 1 })

	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", key)
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", "")
	want := []string{
		"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: has no certificate in PEM",
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and the variable of its key must be set together",
	}
	var faults settings.Faults
	tracing.Config{Endpoint: server.URL}.Check(&faults)
	if diff := cmp.Diff(strings.Join(want, "\n"), faults.Err().Error()); diff != "" {
		t.Error(diff)
	}
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
