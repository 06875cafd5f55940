package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"intents.internal/core/feed"
	"intents.internal/core/web/docs"
	"intents.internal/pkg/listen"
	"intents.internal/pkg/wire"
)

// endpoint serves a request or returns an error. An error after the first byte closes the connection, which tells the client that
// the response is incomplete.
type endpoint func(http.ResponseWriter, *http.Request) error

// route wraps an endpoint with its deadline, its error responses, its metrics and its log line.
func (s *Server) route(e endpoint, fallback fallbackError) http.Handler {
	return s.streamRoute(func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		return e(w, r.WithContext(ctx))
	}, fallback)
}

// streamRoute is route without a deadline, for responses that the client reads at its own pace.
func (s *Server) streamRoute(e endpoint, fallback fallbackError) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := s.begin(r.Context(), w, r)
		x.response.conn = listen.JoinedOf(r.Context())
		if aborted := x.end(recoverPanic(e, x.response, x.request), fallback); aborted {
			panic(http.ErrAbortHandler)
		}
	})
}

// exchange is a request in progress.
type exchange struct {
	server   *Server
	request  *http.Request
	response *statusRecorder
	started  time.Time
	span     trace.Span
}

// begin begins a request, which gets the context. Nothing may keep the response, unless the endpoint says otherwise.
func (s *Server) begin(ctx context.Context, w http.ResponseWriter, r *http.Request) *exchange {
	forbidCaching(w.Header())
	x := &exchange{server: s, response: &statusRecorder{ResponseWriter: w}, started: time.Now()}
	x.response.exchange = x
	x.request, x.span = s.startTrace(ctx, r, x.started)
	s.metrics.inFlight.Inc()
	return x
}

// end answers with an error that the endpoint has returned, and records the request. aborted means that the response is incomplete.
func (x *exchange) end(cause error, fallback fallbackError) (aborted bool) {
	defer x.server.metrics.inFlight.Dec()
	aborted = cause != nil && x.response.status != 0
	if cause != nil && !aborted {
		writeError(x.response, x.request, toAPIError(cause, fallback))
	}
	if x.response.status == 0 && x.response.unconfirmed != nil { // the endpoint's response or its error was dropped
		cause = x.response.unconfirmed
		writeError(x.response, x.request, toAPIError(cause, fallback))
	}
	x.server.logRequest(x.request, x.response.status, x.started, cause, aborted)
	endTrace(x.span, x.request, x.response.status, aborted)
	return aborted
}

// recoverPanic calls the endpoint and returns a panic as an error, so that one request cannot end the process.
func recoverPanic(e endpoint, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
		}
	}()
	return e(w, r)
}

// statusRecorder records the status of a response, has its header and body written together, and confirms what it tells.
type statusRecorder struct {
	http.ResponseWriter
	exchange *exchange
	status   int
	conn     *listen.Joined // nil for a batch's member
	// committed is set by an endpoint that tells of nothing but its own commit.
	committed bool
	// repeated is set if the response is an error that a former try of the same write may have caused, see apierror.Error.
	repeated bool
	// unconfirmed is why the response was dropped.
	unconfirmed error
}

func (r *statusRecorder) WriteHeader(status int) {
	if r.status == 0 && !r.confirm(status) {
		return
	}
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *statusRecorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.status == 0 {
		return len(b), nil // the response is dropped
	}
	r.conn.Joins(true)
	defer r.conn.Joins(false)
	return r.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController access to the underlying writer.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// routine are the routes that gateways poll every few seconds; only their failures are logged.
var routine = []string{
	"GET " + wire.PathKeyChanges, "GET " + wire.PathKeyFilter, "GET " + wire.PathEventAccounts, "POST " + wire.PathUsage,
	"GET /v2/tokens", "GET /v2/chains", "GET /openapi.json", "GET /docs", patternDocsPages, "GET " + docs.LLMsPath,
}

// logRequest counts the request and writes its log line.
func (s *Server) logRequest(r *http.Request, status int, started time.Time, cause error, aborted bool) {
	route, elapsed := r.Pattern, time.Since(started)
	if route == "" {
		route = "none"
	}
	clientClosed := r.Context().Err() != nil
	s.metrics.count(route, status, elapsed, cause, aborted, clientClosed)
	draining := errors.Is(cause, feed.ErrDraining) // an expected 503
	isRoutine := r.Header.Get(wire.HeaderRequestID) == "" && slices.Contains(routine, route)
	if (status < http.StatusInternalServerError || draining) && (isRoutine || s.AccessLog == nil) {
		return
	}
	attributes := []slog.Attr{
		slog.String("route", route),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(elapsed.Microseconds())/1000),
		slog.String("key_id", r.Header.Get(wire.HeaderKeyID)),
	}
	log, level := cmp.Or(s.AccessLog, s.Log), slog.LevelInfo
	if (aborted || status >= http.StatusInternalServerError) && !clientClosed && !draining {
		attributes = append(attributes, slog.Any("error", cause))
		suppressed, due := int64(0), true
		if status == http.StatusServiceUnavailable {
			suppressed, due = s.unavailable.Due(cause)
		}
		switch {
		case due:
			log, level = s.Log, slog.LevelError
			attributes = append(attributes, slog.Int64("suppressed", suppressed))
		case s.AccessLog == nil:
			return
		}
	}
	log.LogAttrs(r.Context(), level, "request", attributes...)
}

// writeError answers a request with an error, whose body has the id that the gateway sent with the request.
func writeError(w http.ResponseWriter, r *http.Request, e *apiError) {
	forbidCaching(w.Header()) // what the endpoint said was of the failed response
	if recorder, ok := w.(*statusRecorder); ok && e.repeated {
		recorder.Repeated()
	}
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(wire.RetryAfter(e.status, e.retryAfter)))
	}
	body, err := json.Marshal(e.body)
	if err != nil {
		panic(err) // cannot fail: the bodies are types of this package and of wire
	}
	if id := r.Header.Get(wire.HeaderRequestID); id != "" {
		body = wire.AppendErrorBody(nil, body, id)
	}
	writeBody(w, e.status, body)
}

// writeJSON writes one JSON value. It marshals first, so that a failure leaves the response unwritten.
func writeJSON(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	writeBody(w, status, body)
	return nil
}
