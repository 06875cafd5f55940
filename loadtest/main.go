// Command loadtest measures what the service promises of its speed and size, against real peers on the same machine in
// the same run. The machine is shared by all that runs, so only ratios and medians mean anything.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `loadtest measures the service against real peers.

  go run ./loadtest writes     inserting intents beside pgbench's single-row inserts into the same table
  go run ./loadtest lists      the first page of lists with 10^3 to 10^7 intents, and the plans behind them
  go run ./loadtest stream     the memory that core and gateway take to send one list of 10^6 intents
  go run ./loadtest keys       what 10^4 unknown keys a second cost the gateway, core and honest clients
  go run ./loadtest crowd      what idle, slow and flooding clients do to the others
  go run ./loadtest edge       what the gateway's checks cost, beside nginx, haproxy and a fixed reply
  go run ./loadtest replicas   1, 2 and 4 gateways on one Redis behind haproxy
  go run ./loadtest run        a constant load on any deployment, with keys of your own

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
		"writes": writes, "lists": lists, "stream": stream, "keys": keys, "edge": edge, "replicas": replicas,
		"crowd": crowd, "run": runDeployment,
		"fixed": fixed, "stand-in": standIn, // which edge starts as processes of their own
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
