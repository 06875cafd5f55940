package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"intents.internal/pkg/help"
)

// wholeFlags are the flags of the scenario whole.
type wholeFlags struct {
	rounds, keyCount, clients, connections int
	duration                               time.Duration
	peer, out                              string
	profiled                               bool
	// wanted matches the group and name of the rows to measure.
	wanted *regexp.Regexp
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
	rows = filterRows(rows, f.wanted)
	if err := measureRounds(ctx, rows, f.rounds); err != nil {
		return err
	}
	printWhole(rows)
	constant, err := b.constantPosts(ctx, rows)
	if err != nil {
		return err
	}
	return writeOutput(f.out, "whole", map[string]any{"closedLoop": rows, "constantRate": constant})
}

// batchRate is how many batches a second single POSTs are measured beside.
const batchRate = 10

// constantPosts measures the response times of POSTs at half the rate that the slowest release has reached.
func (b *wholeBench) constantPosts(ctx context.Context, rows []*row) (constant []*constantRow, err error) {
	rate, post := math.Inf(1), postRequest()
	for _, r := range rows {
		if r.Group == postTransfers {
			rate = min(rate, medianOf(r.Turns, turn.rate)/2)
		}
	}
	if math.IsInf(rate, 1) {
		return nil, nil // they were not measured
	}
	for _, s := range slices.Backward(b.stacks) { // the other release is what this one is compared with
		constant = append(constant, &constantRow{Name: s.name, address: s.address(), request: func(n int) []byte { return s.good.request(post, n) }})
	}
	if s, batch := b.stacks[0], batchRequest(); rowOf(rows, postBatches, s.name) != nil {
		constant = append(constant, &constantRow{
			Name: fmt.Sprintf("%s, %d batches a second beside", s.name, batchRate), address: s.address(),
			request: func(n int) []byte { return s.good.request(post, n) },
			beside:  &openLoop{connections: batchConnections, rate: batchRate, duration: b.duration},
			batch:   func(n int) []byte { return s.good.request(batch, n) },
		})
	}
	err = measureConstant(ctx, openLoop{connections: b.clients, rate: rate, duration: b.duration}, b.rounds, 0, constant)
	if err == nil {
		printConstant(rate, constant)
	}
	return constant, err
}

func parseWholeFlags(args []string) (f wholeFlags, err error) {
	flags := help.FlagSet("whole", args)
	flags.IntVar(&f.rounds, "rounds", 5, "how often each row is measured")
	flags.DurationVar(&f.duration, "time", 4*time.Second, "how long a turn lasts, whole seconds")
	flags.IntVar(&f.keyCount, "keys", 20_000, "number of API keys of the requests")
	flags.IntVar(&f.clients, "clients", 256, "number of connections that POST, and of pgbench's clients")
	flags.IntVar(&f.connections, "connections", 64, "number of connections of all other requests")
	flags.StringVar(&f.peer, "peer", "", "a `DIR` with the programs core and gateway of another release, which is measured in turns with this one")
	flags.BoolVar(&f.profiled, "profile", false, "write CPU profiles of this release's gateway and core in each row to out, of the last round")
	flags.StringVar(&f.out, "out", "loadtest/out", "directory of the results as JSON, and of the log")
	wanted := flags.String("rows", "", "measure only the rows whose group and name match this regular expression")
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	if f.wanted, err = regexp.Compile(*wanted); err != nil {
		return f, fmt.Errorf("rows: %w", err)
	}
	if f.rounds < 1 || f.duration < time.Second || f.duration%time.Second != 0 || f.keyCount < keysPerAccount || f.clients < 1 || f.connections < 1 {
		return f, fmt.Errorf("rounds, clients and connections must be at least 1, keys at least %d, time whole seconds", keysPerAccount)
	}
	return f, nil
}

func printWhole(rows []*row) {
	fmt.Print("\n| request | server | a second | p50 ms | p99 ms | CPU µs: gateway or proxy | Redis | core | Postgres | | a second ÷ the other release |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		cpu := func(name string) string {
			if _, measured := r.Turns[0].CPU[name]; !measured {
				return ""
			}
			return fmt.Sprintf("%.1f", medianOf(r.Turns, func(t turn) float64 { return t.CPU[name] }))
		}
		latency := func(figure func(turn) float64) string {
			if r.Name == pgbenchServer {
				return "" // it does not report the figure
			}
			return fmt.Sprintf("%.2f", medianOf(r.Turns, figure))
		}
		ratio, pairs := "", ""
		if other := rowOf(rows, r.Group, otherRelease); other != nil && r.Name == thisRelease {
			pairs = fmt.Sprintf("%.2f", medianRatio(r.Turns, other.Turns, turn.rate))
		}
		if r.base != nil && len(r.base.Turns) == len(r.Turns) {
			name := r.base.Name
			if name == r.Name {
				name = r.base.Group
			}
			ratio = fmt.Sprintf("%s %.2f × %s", r.unit, medianRatio(r.Turns, r.base.Turns, r.figure), name)
		}
		fmt.Printf("| %s | %s | %.0f | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Group, r.Name, medianOf(r.Turns, turn.rate),
			latency(func(t turn) float64 { return t.P50 }), latency(func(t turn) float64 { return t.P99 }),
			cpu("gateway"), cpu("redis"), cpu("core"), cpu("postgres"), ratio, pairs)
	}
}

// rowOf returns the row of a group with this name, nil for none.
func rowOf(rows []*row, group, name string) *row {
	for _, r := range rows {
		if r.Group == group && r.Name == name {
			return r
		}
	}
	return nil
}
