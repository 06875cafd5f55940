package command

import (
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/telemetry"
)

const (
	// logBytes bounds the lines that wait while standard output is not read.
	logBytes = 2 << 20
	// accessLogDelay is how long a line of the access log waits for others, so that not every request costs a system call and wakes a
	// thread.
	accessLogDelay = 100 * time.Millisecond
)

// newLog logs to standard output until it is closed, and never blocks on its reader.
func newLog(metrics prometheus.Registerer) (log *slog.Logger, closeLog func() error) {
	return logTo(telemetry.LogWriterOptions{Service: "core", MaxBytes: logBytes}, "main", metrics)
}

// newAccessLog is the log of requests that did not fail by core's fault.
func newAccessLog(metrics prometheus.Registerer) (log *slog.Logger, closeLog func() error) {
	return logTo(telemetry.LogWriterOptions{Service: "core", MaxBytes: logBytes, Delay: accessLogDelay}, "access", metrics)
}

func logTo(options telemetry.LogWriterOptions, name string, metrics prometheus.Registerer) (log *slog.Logger, closeLog func() error) {
	output := telemetry.NewLogWriter(os.Stdout, options)
	prometheus.WrapRegistererWith(prometheus.Labels{"log": name}, metrics).MustRegister(output.Dropped("intents_core_log_dropped_total"))
	return telemetry.NewLogger(output, "core"), output.Close
}
