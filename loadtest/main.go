// Command loadtest measures the performance of the service and of its peers on the same machine. The load generator runs on that
// machine too, so only ratios and medians are meaningful.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `loadtest measures the service against real peers.

  go run ./loadtest whole    a POST, a page of 100 and the catalogue, beside pgbench, nginx and another release
  go run ./loadtest edge     the cost of the gateway's checks, compared with nginx, a bare gateway and a fixed reply
  go run ./loadtest chain    the cost of following 36 chains and 10^6 open intents, and how soon an event is in the status
  go run ./loadtest events   how soon events are read and delivered, at what rate, and what idle long polls cost
  go run ./loadtest run      a constant load on any deployment, with your keys

Each takes -h for its flags.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "loadtest:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to clean up
	}
}

func run(ctx context.Context, args []string) error {
	scenarios := map[string]func(context.Context, []string) error{
		"whole": whole, "edge": edge, "chain": chainScenario, "events": events, "run": runDeployment,
		"fixed": fixed, "bare": bare, "stand-in": standIn, // child processes of edge
	}
	if len(args) == 0 || scenarios[args[0]] == nil {
		fmt.Print(usage)
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("there is no scenario %q", args[0])
	}
	return scenarios[args[0]](ctx, args[1:])
}
