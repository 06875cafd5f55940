package main

import (
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/telemetry"
)

const (
	// accessLogBytes bounds the lines of requests that wait while standard output is not read: about 8,000.
	accessLogBytes = 2 << 20
	// accessLogDelay is how long a line of a request may wait for others, so that a request does not cost a system call.
	accessLogDelay = 100 * time.Millisecond
)

// newAccessLog makes the output of the lines of requests. All other lines have a buffer of their own, which a flood of requests
// cannot fill.
func newAccessLog(registry prometheus.Registerer) *telemetry.LogWriter {
	w := telemetry.NewLogWriter(os.Stdout, telemetry.LogWriterOptions{Service: "gateway", MaxBytes: accessLogBytes, Delay: accessLogDelay})
	registry.MustRegister(w.Dropped("intents_gateway_access_log_dropped_total"))
	return w
}

// accessLog is the logger of requests, nil where they have no lines.
func (g *Gateway) accessLog(c Config) *slog.Logger {
	if !c.AccessLog {
		return nil
	}
	return telemetry.NewLogger(g.access, "gateway")
}
