package command

import (
	"os"
	"time"

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
func newAccessLog() *telemetry.LogWriter {
	return telemetry.NewLogWriter(os.Stdout, telemetry.LogWriterOptions{Service: "gateway", MaxBytes: accessLogBytes, Delay: accessLogDelay})
}
