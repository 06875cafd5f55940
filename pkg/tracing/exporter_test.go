package tracing_test

import (
	"testing"
	"time"

	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/tracing/tracingtest"
)

// Credentials of the collector are replaced while spans are made: the next export bears them, and no others.
func TestHeadersChange(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t, nil)
	tracer := newTracer(t, tracing.Config{Endpoint: collector.URL, Headers: "authorization=Bearer%20old,x-team=a"}, nil)
	for _, refused := range []telemetry.Secret{"no pair", "a=%"} {
		if err := tracer.SetHeaders(refused); err == nil {
			t.Errorf("%q is taken", refused.Reveal())
		}
	}
	if err := tracer.SetHeaders("authorization=Bearer%20new"); err != nil {
		t.Fatal(err)
	}
	tracer.Serve("test", tracing.Parent{}, false, time.Now()).End()
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	exports, last := collector.Exports()
	if exports != 1 || last.Get("Authorization") != "Bearer new" || last.Get("X-Team") != "" {
		t.Errorf("%d exports, the last with %v", exports, last)
	}
	var off *tracing.Tracer
	if err := off.SetHeaders("a=b"); err != nil {
		t.Errorf("while tracing is off: %v", err)
	}
}
