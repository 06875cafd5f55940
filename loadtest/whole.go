package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"
)

// wholeFlags are the flags of the scenario whole.
type wholeFlags struct {
	rounds, keyCount, clients, connections int
	duration                               time.Duration
	peer, out                              string
	profiled                               bool
}

// whole measures requests to the whole service, in turns with pgbench, nginx and, if there is one, another release.
func whole(ctx context.Context, args []string) (err error) {
	f, err := parseWholeFlags(args)
	if err != nil {
		return err
	}
	b, err := openWholeBench(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	rows, err := b.rows(ctx)
	if err != nil {
		return err
	}
	for round := range f.rounds {
		fmt.Printf("round %d of %d\n", round+1, f.rounds)
		for n := range rows {
			if err := rows[(round+n)%len(rows)].measure(ctx); err != nil {
				return err
			}
		}
	}
	printWhole(rows)
	return writeOutput(f.out, "whole", rows)
}

func parseWholeFlags(args []string) (f wholeFlags, err error) {
	flags := flag.NewFlagSet("whole", flag.ContinueOnError)
	flags.IntVar(&f.rounds, "rounds", 5, "how often each row is measured")
	flags.DurationVar(&f.duration, "time", 4*time.Second, "how long a turn lasts, whole seconds")
	flags.IntVar(&f.keyCount, "keys", 20_000, "number of API keys of the requests")
	flags.IntVar(&f.clients, "clients", 256, "number of connections that POST, and of pgbench's clients")
	flags.IntVar(&f.connections, "connections", 64, "number of connections of all other requests")
	flags.StringVar(&f.peer, "peer", "", "a `DIR` with the programs core and gateway of another release, which is measured in turns with this one")
	flags.BoolVar(&f.profiled, "profile", false, "write CPU profiles of this release's gateway and core in each row to out, of the last round")
	flags.StringVar(&f.out, "out", "loadtest/out", "directory of the results as JSON, and of the log")
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	if f.rounds < 1 || f.duration < time.Second || f.duration%time.Second != 0 || f.keyCount < keysPerAccount || f.clients < 1 || f.connections < 1 {
		return f, fmt.Errorf("rounds, clients and connections must be at least 1, keys at least %d, time whole seconds", keysPerAccount)
	}
	return f, nil
}

// wholeRow is one kind of request to one server.
type wholeRow struct {
	Request, Server string
	run             func(context.Context) (closedResult, error)
	// processes returns the processes whose CPU time is measured, by name.
	processes func() map[string][]int
	// base is the row that this one is compared with: by the rate if compareRates is set, else by the edge's CPU time.
	base         *wholeRow
	compareRates bool

	Turns []wholeTurn
}

// wholeTurn is the result of one turn. Times are in milliseconds, CPU times in microseconds per request by process.
type wholeTurn struct {
	Rate, P50, P99 float64
	CPU            map[string]float64
}

// edge is the CPU time of the proxies between the client and core.
func (t wholeTurn) edge() float64 { return t.CPU["gateway"] + t.CPU["redis"] }

func (r *wholeRow) measure(ctx context.Context) error {
	before, err := cpuTimes(r.processes())
	if err != nil {
		return err
	}
	result, err := r.run(ctx)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", r.Request, r.Server, err)
	}
	after, err := cpuTimes(r.processes())
	if err != nil {
		return err
	}
	t := wholeTurn{
		Rate: float64(result.requests) / result.took.Seconds(), P50: milliseconds(result.p50), P99: milliseconds(result.p99),
		CPU: map[string]float64{},
	}
	for name := range after {
		t.CPU[name] = float64((after[name] - before[name]).Microseconds()) / float64(result.requests)
	}
	r.Turns = append(r.Turns, t)
	fmt.Printf("  %s, %s: %.0f/s\n", r.Request, r.Server, t.Rate)
	return ctx.Err()
}

func (r *wholeRow) medianOf(figure func(wholeTurn) float64) float64 {
	values := make([]float64, len(r.Turns))
	for n, t := range r.Turns {
		values[n] = figure(t)
	}
	return median(values)
}

// ratio returns the median, over the rounds, of a figure relative to that of the base in the same round.
func (r *wholeRow) ratio() string {
	if r.base == nil {
		return ""
	}
	figure, unit := wholeTurn.edge, "CPU"
	if r.compareRates {
		figure, unit = func(t wholeTurn) float64 { return t.Rate }, "rate"
	}
	values := make([]float64, len(r.Turns))
	for n, t := range r.Turns {
		values[n] = figure(t) / figure(r.base.Turns[n])
	}
	name := r.base.Server
	if name == r.Server {
		name = r.base.Request
	}
	return fmt.Sprintf("%s %.2f × %s", unit, median(values), name)
}

func printWhole(rows []*wholeRow) {
	fmt.Print("\n| request | server | a second | p50 ms | p99 ms | CPU µs: gateway or proxy | Redis | core | Postgres | |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		cpu := func(name string) string {
			if _, measured := r.Turns[0].CPU[name]; !measured {
				return ""
			}
			return fmt.Sprintf("%.1f", r.medianOf(func(t wholeTurn) float64 { return t.CPU[name] }))
		}
		latency := func(figure func(wholeTurn) float64) string {
			if r.Server == pgbenchServer {
				return "" // it does not report the figure
			}
			return fmt.Sprintf("%.2f", r.medianOf(figure))
		}
		fmt.Printf("| %s | %s | %.0f | %s | %s | %s | %s | %s | %s | %s |\n", r.Request, r.Server,
			r.medianOf(func(t wholeTurn) float64 { return t.Rate }), latency(func(t wholeTurn) float64 { return t.P50 }),
			latency(func(t wholeTurn) float64 { return t.P99 }), cpu("gateway"), cpu("redis"), cpu("core"), cpu("postgres"), r.ratio())
	}
}
