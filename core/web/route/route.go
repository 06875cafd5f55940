package route

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"intents.internal/core/feed"
	"intents.internal/pkg/listen"
	"intents.internal/pkg/wire"
)

// Endpoint serves a request or returns an error. An error after the first byte closes the connection, which tells the client that
// the response is incomplete.
type Endpoint func(http.ResponseWriter, *http.Request) error

// Route is an endpoint with what the router does for it.
type Route struct {
	// Pattern is a method and a path for http.ServeMux.
	Pattern  string
	Endpoint Endpoint
	// Fallback is the 500 for an error without a public one.
	Fallback Fallback
	// Stream is set for a response that the client reads at its own pace: it has no deadline.
	Stream bool
	// Compress is set for a response that is compressed for clients that accept it. Never set it where secrets stand beside content that a
	// request can choose (BREACH).
	Compress bool
	// Routine is set for a route that gateways poll every few seconds; only its failures are logged.
	Routine bool
	// Idempotent is set for a route that honors an Idempotency-Key.
	Idempotent bool
	// ReadOnly is set for a route that writes nothing though its method may, Writes for one that writes though its method is GET.
	ReadOnly, Writes bool
}

// Handler wraps a route's endpoint with its deadline, its error responses, its metrics and its log line.
func (ro *Router) Handler(route Route) http.Handler {
	endpoint := route.Endpoint
	if !route.Stream {
		endpoint = func(w http.ResponseWriter, r *http.Request) error {
			ctx, cancel := context.WithTimeout(r.Context(), Timeout)
			defer cancel()
			return route.Endpoint(w, r.WithContext(ctx))
		}
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := ro.Begin(r.Context(), w, r, &route)
		x.response.conn = listen.JoinedOf(r.Context())
		if aborted := x.Serve(endpoint); aborted {
			panic(http.ErrAbortHandler)
		}
	})
	if route.Compress {
		return ro.compress(handler)
	}
	return handler
}

// Exchange is a request in progress.
type Exchange struct {
	Request *http.Request

	router   *Router
	route    *Route
	response *statusRecorder
	started  time.Time
	span     trace.Span
}

// Begin begins a request of a route, which gets the context. Nothing may keep the response, unless the endpoint says otherwise. The caller
// ends it by Serve or End.
func (ro *Router) Begin(ctx context.Context, w http.ResponseWriter, r *http.Request, route *Route) *Exchange {
	ForbidCaching(w.Header())
	x := &Exchange{router: ro, route: route, response: &statusRecorder{ResponseWriter: w}, started: time.Now()}
	x.response.exchange = x
	x.Request, x.span = x.startTrace(ctx, r)
	ro.metrics.inFlight.Inc()
	return x
}

// Serve calls an endpoint and ends the request. aborted means that the response is incomplete.
func (x *Exchange) Serve(e Endpoint) (aborted bool) {
	return x.End(RecoverPanic(e, x.response, x.Request))
}

// End answers with an error that the endpoint has returned, and records the request. aborted means that the response is incomplete.
func (x *Exchange) End(cause error) (aborted bool) {
	defer x.router.metrics.inFlight.Dec()
	aborted = cause != nil && x.response.status != 0
	if cause != nil && !aborted {
		WriteError(x.response, x.Request, toError(cause, x.route.Fallback))
	}
	if x.response.status == 0 && x.response.unconfirmed != nil { // the endpoint's response or its error was dropped
		cause = x.response.unconfirmed
		WriteError(x.response, x.Request, toError(cause, x.route.Fallback))
	}
	x.logRequest(x.response.status, cause, aborted)
	endTrace(x.span, x.Request, x.response.status, aborted)
	return aborted
}

// RecoverPanic calls the endpoint and returns a panic as an error, so that one request cannot end the process.
func RecoverPanic(e Endpoint, w http.ResponseWriter, r *http.Request) (err error) {
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
	exchange *Exchange
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

// logRequest counts the request and writes its log line. The pattern is the request's: the console replaces its route's by the page's.
func (x *Exchange) logRequest(status int, cause error, aborted bool) {
	ro, r := x.router, x.Request
	pattern, elapsed := cmp.Or(r.Pattern, "none"), time.Since(x.started)
	clientClosed := r.Context().Err() != nil
	ro.metrics.count(pattern, status, elapsed, cause, aborted, clientClosed)
	draining := errors.Is(cause, feed.ErrDraining) // an expected 503
	isRoutine := r.Header.Get(wire.HeaderRequestID) == "" && x.route.Routine
	if (status < http.StatusInternalServerError || draining) && (isRoutine || ro.AccessLog == nil) {
		return
	}
	attributes := []slog.Attr{
		slog.String("route", pattern),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(elapsed.Microseconds())/1000),
		slog.String("key_id", r.Header.Get(wire.HeaderKeyID)),
	}
	log, level := cmp.Or(ro.AccessLog, ro.Log), slog.LevelInfo
	if (aborted || status >= http.StatusInternalServerError) && !clientClosed && !draining {
		attributes = append(attributes, slog.Any("error", cause))
		suppressed, due := int64(0), true
		if status == http.StatusServiceUnavailable {
			suppressed, due = ro.unavailable.Due(cause)
		}
		switch {
		case due:
			log, level = ro.Log, slog.LevelError
			attributes = append(attributes, slog.Int64("suppressed", suppressed))
		case ro.AccessLog == nil:
			return
		}
	}
	log.LogAttrs(r.Context(), level, "request", attributes...)
}

// WriteError answers a request with an error, whose body has the id that the gateway sent with the request.
func WriteError(w http.ResponseWriter, r *http.Request, e *Error) {
	ForbidCaching(w.Header()) // what the endpoint said was of the failed response
	if recorder, ok := w.(*statusRecorder); ok && e.repeated {
		recorder.Repeated()
	}
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(wire.RetryAfter(e.Status, e.retryAfter)))
	}
	body, err := json.Marshal(e.Body)
	if err != nil {
		panic(err) // cannot fail: the bodies are types of this package and of wire
	}
	if id := r.Header.Get(wire.HeaderRequestID); id != "" {
		body = wire.AppendErrorBody(nil, body, id)
	}
	WriteBody(w, e.Status, body)
}

// WriteJSON writes one JSON value. It marshals first, so that a failure leaves the response unwritten.
func WriteJSON(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	WriteBody(w, status, body)
	return nil
}
