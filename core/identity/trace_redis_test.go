package identity_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/core/identity"
	"intents.internal/pkg/testkit/tracingtest"
	"intents.internal/pkg/topology"
)

// Calls to Redis are shown in the trace of the request that makes them, without keys and values; those of no request are not.
func TestTraceRedis(t *testing.T) {
	t.Parallel()
	tracer, collector := tracingtest.Tracer(t, "core")
	client, err := identity.NewRedis(topology.Single, startRedis(t).URL, generous)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(identity.TraceRedis())

	if err := client.Ping(t.Context()).Err(); err != nil { // which connects
		t.Fatal(err)
	}
	_, request := tracer.Start(t.Context(), "POST /auth/sign-in/email", false, time.Now())
	ctx := trace.ContextWithSpan(t.Context(), request)
	if err := client.Get(ctx, "secret").Err(); err == nil {
		t.Fatal("there is a value")
	}
	if err := client.Set(ctx, "secret", "secret", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.EvalSha(ctx, strings.Repeat("0", 40), []string{"secret"}).Err(); err == nil {
		t.Fatal("there is such a script")
	}
	if err := client.LPush(ctx, "secret", "secret").Err(); err == nil {
		t.Fatal("a text is a list")
	}
	pipe := client.Pipeline()
	pipe.Del(ctx, "secret")
	pipe.Del(ctx, "secret")
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	request.End()
	if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	about := func(name string, more ...any) map[string]any {
		all := map[string]any{"db.system.name": "redis", "db.operation.name": name}
		for i := 0; i < len(more); i += 2 {
			all[more[i].(string)] = more[i+1]
		}
		return all
	}
	want := map[string]map[string]any{
		"GET": about("GET"), "SET": about("SET"), "EVALSHA": about("EVALSHA"), "LPUSH": about("LPUSH", "error.type", "redis"),
		"PIPELINE": about("PIPELINE", "db.operation.batch.size", int64(2)),
	}
	got := map[string]map[string]any{}
	for _, s := range collector.Spans() {
		if s.Kind != "client" {
			continue
		}
		got[s.Name] = s.Attributes
		if s.Parent != request.SpanContext().SpanID().String() || s.Failed != (s.Name == "LPUSH") {
			t.Errorf("%+v", s)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
