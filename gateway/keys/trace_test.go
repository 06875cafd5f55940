package keys_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/upstream/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/tracingtest"
	"intents.internal/pkg/wire"
)

// A look-up that several requests wait for is in the trace of the one that asks; the others link to it. What is known needs
// no span.
func TestTrace_SharedLookUp(t *testing.T) {
	t.Parallel()
	tracer, collector := tracingtest.Tracer(t, "gateway")
	core := coretest.Start(t, nil)
	asked, release := make(chan struct{}), make(chan struct{})
	core.BeforeVerdict = sync.OnceFunc(func() {
		close(asked)
		<-release
	})
	v := start(t, core)
	key := core.AddKey(network.Test).Hash()
	v.awaitChanges(t, 1)

	var requests sync.WaitGroup
	verify := func(hash apikey.Hash) trace.Span {
		_, span := tracer.Start(t.Context(), "request", false, time.Now())
		requests.Go(func() {
			if _, err := v.Verify(span, hash); err != nil {
				t.Error(err)
			}
			span.End()
		})
		return span
	}
	first := verify(key)
	<-asked
	joins := v.counted(t, "intents_gateway_key_verdicts_total")
	var others []trace.Span
	for range 16 {
		others = append(others, verify(key))
	}
	asynctest.Eventually(t, "the others ask as well", func() bool { return v.counted(t, "intents_gateway_key_verdicts_total") == joins+16 })
	close(release)
	requests.Wait()
	late := verify(key)
	requests.Wait()
	if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	spans := collector.Spans()
	lookUp := func(of trace.Span) (found []tracingtest.Span) {
		for _, s := range tracingtest.Of(of.SpanContext().TraceID().String(), spans) {
			if s.Name == "key look-up" {
				found = append(found, s)
			}
		}
		return found
	}
	own := lookUp(first)
	if len(own) != 1 || len(lookUp(late)) != 0 {
		t.Fatalf("look-ups: %d, and late %d, want 1 and none:\n%s", len(own), len(lookUp(late)), tracingtest.Text(spans))
	}
	want := []tracingtest.Link{{TraceID: first.SpanContext().TraceID().String(), ID: own[0].ID}}
	joined := 0
	for _, other := range others {
		for _, s := range lookUp(other) { // a request that came a moment later found the verdict
			joined++
			if diff := cmp.Diff(want, s.Links); diff != "" || s.Parent != other.SpanContext().SpanID().String() {
				t.Errorf("links of one that joined (-want +got):\n%s", diff)
			}
		}
	}
	if joined == 0 {
		t.Error("none of 16 joined")
	}
	question, found := tracingtest.Find(tracingtest.Of(first.SpanContext().TraceID().String(), spans), "intents-gateway", "POST "+wire.PathVerifyKey)
	if !found || question.Parent != own[0].ID {
		t.Errorf("the question to core: %+v", question)
	}
}
