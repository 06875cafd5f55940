package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"intents.internal/core/api/docs"
	"intents.internal/pkg/wire"
)

// endpoint answers a request or returns why it did not. An error after part of an answer has left cuts the connection:
// nothing else could tell the client that the answer is not whole.
type endpoint func(http.ResponseWriter, *http.Request) error

// route gives an endpoint its deadline, its error replies, its metrics and its log line.
func (s *Server) route(e endpoint, unforeseen failure) http.Handler {
	return s.streamRoute(func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		return e(w, r.WithContext(ctx))
	}, unforeseen)
}

// streamRoute is route without a deadline, for answers that take as long as their reader.
func (s *Server) streamRoute(e endpoint, unforeseen failure) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		r, span := s.startTrace(r, started)
		s.metrics.underWay.Inc()
		defer s.metrics.underWay.Dec()
		seen := &observed{ResponseWriter: w}
		cause := attempt(e, seen, r)
		cut := cause != nil && seen.status != 0
		if cause != nil && !cut {
			writeRefusal(seen, describe(cause, unforeseen))
		}
		s.record(r, seen.status, started, cause, cut)
		endTrace(span, r, seen.status, cut)
		if cut {
			panic(http.ErrAbortHandler)
		}
	})
}

// attempt turns a panic into an error, so that one bad request never takes the process down.
func attempt(e endpoint, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
		}
	}()
	return e(w, r)
}

// observed remembers the status of an answer.
type observed struct {
	http.ResponseWriter
	status int
}

func (o *observed) WriteHeader(status int) {
	if o.status == 0 {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

func (o *observed) Write(b []byte) (int, error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	return o.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the writer beneath.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// routine is what gateways ask without a client's request, every few seconds or more often; only its failures are worth a line.
var routine = []string{
	"GET " + wire.PathKeyChanges, "GET " + wire.PathKeyFilter, "GET " + wire.PathChains, "POST " + wire.PathUsage,
	"GET /v2/tokens", "GET /v2/chains", "GET /openapi.json", "GET /docs", "GET " + docs.StylePath,
}

func (s *Server) record(r *http.Request, status int, started time.Time, cause error, cut bool) {
	route, elapsed := r.Pattern, time.Since(started)
	if route == "" {
		route = "none"
	}
	left := r.Context().Err() != nil
	s.metrics.count(route, status, elapsed, cause, cut, left)
	attributes := []slog.Attr{
		slog.String("route", route),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(elapsed.Microseconds())/1000),
		slog.String("key_id", r.Header.Get(wire.HeaderKeyID)),
	}
	level := slog.LevelInfo
	// A client that has left needs nobody's help.
	if (cut || status >= http.StatusInternalServerError) && !left {
		level = slog.LevelError
		attributes = append(attributes, slog.Any("error", cause))
	}
	isRoutine := r.Header.Get(wire.HeaderRequestID) == "" && slices.Contains(routine, route)
	if status < http.StatusInternalServerError && (isRoutine || !s.AccessLog) {
		return
	}
	s.Log.LogAttrs(r.Context(), level, "request", attributes...)
}

func writeRefusal(w http.ResponseWriter, r *refusal) {
	// These speak of an answer that did not come about.
	w.Header().Del("ETag")
	w.Header().Del("Cache-Control")
	if r.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(r.retryAfter))
	}
	_ = writeJSON(w, r.status, r.body) // the client is gone if this fails
}

// writeJSON answers with one JSON value. Marshalling happens first, so that a value that cannot be written is an error
// and not half an answer.
func writeJSON(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone if this fails
	return nil
}
