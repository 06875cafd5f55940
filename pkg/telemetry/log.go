// Package telemetry is the observability of a service: the log, the operations listener with metrics, liveness, readiness and
// profiles, and the type that keeps secrets out of them.
package telemetry

import (
	"io"
	"log/slog"
)

// NewLogger writes one JSON object per line to w, with the service's name and the attributes that InRequest stored in the
// context. Debug lines are dropped.
func NewLogger(w io.Writer, service string) *slog.Logger {
	return slog.New(requestHandler{slog.NewJSONHandler(w, nil)}).With("service", service)
}
