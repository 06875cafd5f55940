// Package telemetry is a service's interface to its operators: the log, the operations listener with metrics, liveness, readiness
// and profiles, and the type that keeps secrets out of all of them.
package telemetry

import (
	"io"
	"log/slog"
)

// NewLogger writes one JSON object a line to w, each with the service's name, and with the ids of the request in whose
// context it was logged (InRequest). Debug lines are left out.
func NewLogger(w io.Writer, service string) *slog.Logger {
	return slog.New(requestHandler{slog.NewJSONHandler(w, nil)}).With("service", service)
}
