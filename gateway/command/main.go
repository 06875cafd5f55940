// Package command is the gateway on the command line: it wires the parts of a replica from its settings, and owns its listeners,
// its background goroutines and its drain.
package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"intents.internal/pkg/help"
	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
)

const helpText = `gateway checks API keys, their environments and rate limits, and forwards the requests that pass to core.

  gateway               serve clients until TERM
  gateway healthcheck   ask the gateway of these settings, on this machine, whether it is ready
  gateway healthcheck http://gateway.example/health
                        ask the service at this URL whether it works; needs no settings
  gateway version       print the version

Settings come from the environment, and from the file that GATEWAY_ENV_FILE names; GATEWAY_CORE_SECRET is required. deploy/settings.md has all.
`

// Main runs the command that the arguments name, until it ends or the process is asked to stop, and sets the exit status.
func Main() {
	switch args := os.Args[1:]; {
	case help.Asked(args):
		fmt.Print(helpText)
		return
	case help.VersionAsked(args):
		fmt.Print(help.Version("gateway"))
		return
	}
	output := telemetry.NewLogWriter(os.Stdout, telemetry.LogWriterOptions{Service: "gateway", MaxBytes: 256 << 10})
	log := telemetry.NewLogger(output, "gateway")
	err := run(os.Args[1:], log, output)
	if err != nil {
		log.Error("gateway failed", "error", err)
	}
	if errors.Join(err, output.Close()) != nil {
		os.Exit(1)
	}
}

// run serves until the process receives a signal. The only command, healthcheck, checks the readiness of the gateway with these
// settings on this machine, or what answers at a URL, for containers without a shell.
func run(args []string, log *slog.Logger, output *telemetry.LogWriter) error {
	check := len(args) > 0 && args[0] == "healthcheck" && len(args) <= 2
	if len(args) > 0 && !check {
		return fmt.Errorf("the only argument is healthcheck, with or without a URL, not %q; settings come from the environment", args)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 2 {
		return telemetry.ProbeURL(ctx, args[1])
	}
	config, err := ParseConfig(settings.Environment())
	if err != nil {
		return fmt.Errorf("read the configuration:\n%w", err)
	}
	if check {
		return telemetry.Probe(ctx, config.OpsListen)
	}
	access := newAccessLog()
	gateway, err := New(ctx, config, log, telemetry.NewLogger(access, "gateway"))
	if err != nil {
		return errors.Join(err, access.Close())
	}
	gateway.Metrics.MustRegister(output.Dropped("intents_gateway_log_dropped_total"), access.Dropped("intents_gateway_access_log_dropped_total"))
	return errors.Join(gateway.Run(ctx), gateway.Close(), access.Close())
}
