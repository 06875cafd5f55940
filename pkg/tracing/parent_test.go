package tracing_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/tracing"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	sampled = "00-" + traceID + "-" + spanID + "-01"
)

func TestReadParent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parents        []string
		valid, sampled bool
	}{
		"sampled":                          {[]string{sampled}, true, true},
		"not sampled":                      {[]string{"00-" + traceID + "-" + spanID + "-00"}, true, false},
		"random":                           {[]string{"00-" + traceID + "-" + spanID + "-03"}, true, true},
		"flags that nobody knows":          {[]string{"00-" + traceID + "-" + spanID + "-fd"}, true, true},
		"none":                             {nil, false, false},
		"two":                              {[]string{sampled, sampled}, false, false},
		"empty":                            {[]string{""}, false, false},
		"no trace id":                      {[]string{"00-" + strings.Repeat("0", 32) + "-" + spanID + "-01"}, false, false},
		"no parent id":                     {[]string{"00-" + traceID + "-" + strings.Repeat("0", 16) + "-01"}, false, false},
		"upper case":                       {[]string{strings.ToUpper(sampled)}, false, false},
		"not hexadecimal":                  {[]string{strings.Replace(sampled, "a", "g", 1)}, false, false},
		"too short":                        {[]string{sampled[:54]}, false, false},
		"too long for version 00":          {[]string{sampled + "-01"}, false, false},
		"a space before":                   {[]string{" " + sampled}, false, false},
		"another separator":                {[]string{strings.Replace(sampled, "-", "_", 1)}, false, false},
		"version ff":                       {[]string{"ff" + sampled[2:]}, false, false},
		"a later version":                  {[]string{"cc" + sampled[2:]}, true, true},
		"a later version with more":        {[]string{"cc" + sampled[2:] + "-what-the-future-will-be-like"}, true, true},
		"a later version that runs on":     {[]string{"cc" + sampled[2:] + "x"}, false, false},
		"a later version that is no digit": {[]string{"0g" + sampled[2:]}, false, false},
	} {
		got := tracing.ReadParent(c.parents, nil)
		if got.IsValid() != c.valid || got.Sampled() != c.sampled {
			t.Errorf("%s: valid %v, sampled %v", name, got.IsValid(), got.Sampled())
		}
		want := ""
		if c.valid {
			want = traceID
		}
		if id := tracing.TraceIDOf(c.parents); id != want {
			t.Errorf("%s: trace id %q, want %q", name, id, want)
		}
	}
}

// What the gateway writes is what it read, in the span's own name, with what other systems wrote in tracestate.
func TestTraceContextIsPassedOn(t *testing.T) {
	t.Parallel()
	tracer := newTracer(t, tracing.Config{Endpoint: "http://127.0.0.1:1", TrustClients: true}, nil)
	for name, c := range map[string]struct {
		states []string
		want   string
	}{
		"none":            {nil, ""},
		"one":             {[]string{"congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"}, "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"},
		"two lines":       {[]string{"congo=1", "rojo=2"}, "congo=1,rojo=2"},
		"not well-formed": {[]string{"congo=1,rojo"}, ""},
		"a member twice":  {[]string{"congo=1,congo=2"}, ""},
		"too long":        {[]string{"congo=" + strings.Repeat("x", 512)}, ""},
		"too many":        {[]string{strings.TrimSuffix(strings.Repeat("a=1,", 33), ",")}, ""},
	} {
		span := tracer.Serve("test", tracing.ReadParent([]string{sampled}, c.states), false, now())
		parent := string(span.AppendTraceparent(nil))
		if want := "00-" + traceID + "-" + span.SpanID() + "-01"; parent != want || span.SpanID() == spanID {
			t.Errorf("%s: %s, want %s and another span id", name, parent, want)
		}
		if span.Tracestate() != c.want {
			t.Errorf("%s: tracestate %q, want %q", name, span.Tracestate(), c.want)
		}
	}
}

// The parser takes everything that OpenTelemetry's own takes, and reads the same in it; but for a separator after the end
// of version 00, which that lets pass.
func FuzzReadParent(f *testing.F) {
	for _, seed := range []string{sampled, "cc" + sampled[2:] + "-x", "", "00-", sampled + "-", strings.ToUpper(sampled)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.HasPrefix(text, "00-") && len(text) == 56 && text[55] == '-' {
			t.Skip()
		}
		theirs := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(),
			propagation.MapCarrier{"traceparent": text}))
		ours := tracing.ReadParent([]string{text}, nil)
		if theirs.IsValid() && !ours.IsValid() {
			t.Errorf("%q is refused", text)
		}
		if ours.IsValid() && (len(text) < 55 || tracing.TraceIDOf([]string{text}) != text[3:35]) {
			t.Errorf("%q: trace id %s", text, tracing.TraceIDOf([]string{text}))
		}
		if theirs.IsValid() && (theirs.IsSampled() != ours.Sampled() || theirs.TraceID().String() != tracing.TraceIDOf([]string{text})) {
			t.Errorf("%q is read otherwise", text)
		}
		if tracing.IsTraceparent([]byte(text)) != ours.IsValid() {
			t.Errorf("%q: the two ways to ask differ", text)
		}
	})
}
