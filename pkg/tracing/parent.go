package tracing

import (
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// The headers of W3C Trace Context.
const (
	HeaderTraceparent = "Traceparent"
	HeaderTracestate  = "Tracestate"
)

const (
	// traceparentBytes is the length of a traceparent of version 00, and the least of later ones.
	traceparentBytes = 55
	// maxTracestateBytes is how much of tracestate a service must pass on; longer ones are dropped.
	maxTracestateBytes = 512
	// knownFlags are those of version 00 and its level 2; others are not passed on.
	knownFlags = trace.FlagsSampled | trace.FlagsRandom
)

// Parent is the trace context that came with a request; the zero value is none.
type Parent struct{ context trace.SpanContext }

// ReadParent reads the lines of traceparent and tracestate that came (https://www.w3.org/TR/trace-context/). More than one
// traceparent, or one that is not well-formed, is none. A tracestate that is not well-formed is dropped by itself.
func ReadParent[text ~string | ~[]byte](parents, states []text) Parent {
	if len(parents) != 1 {
		return Parent{}
	}
	read, ok := parse(parents[0])
	if !ok {
		return Parent{}
	}
	read.TraceState = readState(states)
	return Parent{trace.NewSpanContext(read)}
}

// IsValid reports whether there is a parent.
func (p Parent) IsValid() bool { return p.context.IsValid() }

// Sampled reports whether the parent says that the trace is recorded.
func (p Parent) Sampled() bool { return p.context.IsSampled() }

// IsTraceparent reports whether the text is a traceparent.
func IsTraceparent[text ~string | ~[]byte](b text) bool {
	_, ok := parse(b)
	return ok
}

// TraceIDOf is the trace id in the lines of traceparent that came, empty where there is none.
func TraceIDOf[text ~string | ~[]byte](parents []text) string {
	if len(parents) != 1 {
		return ""
	}
	read, ok := parse(parents[0])
	if !ok {
		return ""
	}
	return read.TraceID.String()
}

// parse reads version-traceid-parentid-flags, in lower-case hexadecimal digits. Of a later version than 00 what is known
// is read, and what follows it is left.
func parse[text ~string | ~[]byte](b text) (read trace.SpanContextConfig, ok bool) {
	if len(b) < traceparentBytes || b[2] != '-' || b[35] != '-' || b[52] != '-' {
		return read, false
	}
	var version, flags [1]byte
	if !decode(version[:], b, 0) || !decode(read.TraceID[:], b, 3) || !decode(read.SpanID[:], b, 36) || !decode(flags[:], b, 53) {
		return read, false
	}
	const forbidden = 0xff
	switch {
	case version[0] == forbidden:
		return read, false
	case version[0] == 0 && len(b) != traceparentBytes:
		return read, false
	case len(b) > traceparentBytes && b[traceparentBytes] != '-':
		return read, false
	}
	read.TraceFlags = trace.TraceFlags(flags[0]) & knownFlags
	read.Remote = true
	return read, read.TraceID.IsValid() && read.SpanID.IsValid() // which all zeros are not
}

// decode reads the digits from there on into all of to.
func decode[text ~string | ~[]byte](to []byte, from text, at int) bool {
	for n := range to {
		high, low := digit(from[at+2*n]), digit(from[at+2*n+1])
		if high > 15 || low > 15 {
			return false
		}
		to[n] = high<<4 | low
	}
	return true
}

func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	default:
		return 0xff
	}
}

// readState puts the lines together, as those of a list are.
func readState[text ~string | ~[]byte](lines []text) trace.TraceState {
	var whole strings.Builder
	for n, line := range lines {
		if whole.Len()+1+len(line) > maxTracestateBytes+1 {
			return trace.TraceState{}
		}
		if n > 0 {
			whole.WriteByte(',')
		}
		whole.WriteString(string(line))
	}
	state, err := trace.ParseTraceState(whole.String())
	if err != nil {
		return trace.TraceState{}
	}
	return state
}
