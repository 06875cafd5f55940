// Command loadtest measures the performance of the service and of its peers on the same machine. The load generator runs on that
// machine too, so only ratios and medians are meaningful.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"intents.internal/pkg/help"
)

const usage = `loadtest measures the service against real peers.

  go run ./loadtest whole    a POST, a page of 100 and the catalogue, beside pgbench, nginx and another release
  go run ./loadtest edge     the cost of the gateway's checks, compared with nginx, a bare gateway and a fixed reply
  go run ./loadtest chain    the cost of following 36 chains and 10^6 open intents, and how soon an event is in the status
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

// scenarios are the subcommands.
var scenarios = map[string]func(context.Context, []string) error{
	"whole": whole, "edge": edge, "chain": chainScenario, "run": runDeployment,
}

// children are the processes that edge starts.
var children = map[string]func(context.Context, []string) error{"fixed": fixed, "bare": bare, "stand-in": standIn}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		fmt.Print(usage)
		return nil
	case help.VersionAsked(args):
		fmt.Print(help.Version("loadtest"))
		return nil
	case children[args[0]] != nil:
		return children[args[0]](ctx, args[1:])
	case scenarios[args[0]] != nil:
		if err := scenarios[args[0]](ctx, args[1:]); !errors.Is(err, flag.ErrHelp) {
			return err
		}
		return nil
	case help.Asked(args):
		fmt.Print(usage)
		return nil
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("there is no scenario %q", args[0])
}
