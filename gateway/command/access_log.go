package command

import (
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/telemetry"
)

const (
	// accessLogBytes bounds the access log lines that wait while standard output is not read: about 8,000.
	accessLogBytes = 2 << 20
	// accessLogDelay is how long a line is buffered, so that several lines share one system call.
	accessLogDelay = 100 * time.Millisecond
)

// newAccessLog returns the writer of the access log. Its buffer is separate, so that a flood of requests does not displace other
// log lines.
func newAccessLog(registry prometheus.Registerer) *telemetry.LogWriter {
	w := telemetry.NewLogWriter(os.Stdout, telemetry.LogWriterOptions{Service: "gateway", MaxBytes: accessLogBytes, Delay: accessLogDelay})
	registry.MustRegister(w.Dropped("intents_gateway_access_log_dropped_total"))
	return w
}

// accessLog is the logger of requests, nil if GATEWAY_ACCESS_LOG is off.
func (g *Gateway) accessLog(c Config) *slog.Logger {
	if !c.AccessLog {
		return nil
	}
	return telemetry.NewLogger(g.access, "gateway")
}
