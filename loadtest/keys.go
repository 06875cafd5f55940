package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
)

// honestRate is the rate of honest requests a second.
const honestRate = 100

// floodResult is the result of a round.
type floodResult struct {
	flood             *flood
	lookUps, readings float64
	alone, beside     []float64                // latencies of honest requests, in milliseconds
	cpu               map[string]time.Duration // of the flood, by process
}

// measuredProcesses are the processes whose CPU time is measured.
var measuredProcesses = []string{stack.GatewayName(1), stack.CoreName(1), stack.Postgres, stack.Redis}

// keys sends requests with unknown keys to a gateway and counts the requests that core gets.
func keys(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("keys", flag.ContinueOnError)
	rate := flags.Int("rate", 10_000, "unknown keys a second")
	duration := flags.Duration("time", 10*time.Second, "duration of a round")
	conns := flags.Int("conns", 64, "number of connections")
	rounds := flags.Int("rounds", 3, "rounds from one address, and as many from many addresses")
	if err := flags.Parse(args); err != nil {
		return err
	}
	data, err := os.MkdirTemp("", "loadtest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	fmt.Println("building and starting the stack")
	s, err := stack.Start(ctx, stack.Config{
		Data: data, Listen: "127.0.0.1:0", Ephemeral: true, OnDisk: true,
		// For X-Forwarded-For.
		GatewayEnv: []string{"GATEWAY_TRUSTED_PROXIES=127.0.0.0/8", "GATEWAY_ACCESS_LOG=false"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := raiseLimit(ctx, s.Env()); err != nil {
		return err
	}
	one, many := make([]floodResult, *rounds), make([]floodResult, *rounds)
	for round := range *rounds {
		for name, r := range map[string]*floodResult{"one address": &one[round], "many addresses": &many[round]} {
			attack := &flood{url: s.Env().GatewayURL, rate: *rate, duration: *duration, conns: *conns}
			if name == "one address" {
				attack.address = fmt.Sprintf("203.0.113.%d", round%250+1)
			}
			if *r, err = measureFlood(ctx, s.Env(), attack); err != nil {
				return err
			}
			fmt.Printf("round %d of %d, %s: %d keys in %.1f s, %.0f look-ups, honest p99 %.1f ms, before that %.1f ms\n",
				round+1, *rounds, name, r.flood.sent(), r.flood.took.Seconds(), r.lookUps, quantile(r.beside, 0.99), quantile(r.alone, 0.99))
		}
	}
	printFlood(one, many)
	return nil
}

// raiseLimit raises the rate limit of the test key, whose requests are measured.
func raiseLimit(ctx context.Context, env stack.Env) (err error) {
	conn, err := pgx.Connect(ctx, env.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	_, err = conn.Exec(ctx, "UPDATE api_keys SET limit_requests = 1000000 WHERE start = $1", env.TestKey[:12])
	if err != nil {
		return fmt.Errorf("raise the limit of the test key: %w", err)
	}
	return raiseAccountLimits(ctx, conn)
}

// measureFlood measures one round: honest requests alone, then beside the flood.
func measureFlood(ctx context.Context, env stack.Env, attack *flood) (g floodResult, err error) {
	g.flood = attack
	processes := map[string][]int{}
	for _, name := range measuredProcesses {
		processes[name] = processTree(env.PID(name))
	}
	started, err := cpuTimes(processes)
	if err != nil {
		return g, err
	}
	if g.alone, err = honest(ctx, env, attack.duration); err != nil {
		return g, err
	}
	before, err := cpuTimes(processes)
	if err != nil {
		return g, err
	}
	lookUps, readings, err := coreCounters(ctx, env)
	if err != nil {
		return g, err
	}
	var honestRequests sync.WaitGroup
	var honestErr error
	honestRequests.Go(func() { g.beside, honestErr = honest(ctx, env, attack.duration) })
	floodErr := attack.run(ctx)
	honestRequests.Wait()
	if err := errors.Join(floodErr, honestErr); err != nil {
		return g, err
	}
	after, err := cpuTimes(processes)
	if err != nil {
		return g, err
	}
	g.cpu = map[string]time.Duration{}
	for _, name := range measuredProcesses {
		g.cpu[name] = after[name] - before[name] - (before[name] - started[name]) // minus the cost of honest requests alone
	}
	g.lookUps, g.readings, err = coreCounters(ctx, env)
	g.lookUps, g.readings = g.lookUps-lookUps, g.readings-readings
	return g, err
}

// honest sends requests with the test key at honestRate and returns the response times in milliseconds.
func honest(ctx context.Context, env stack.Env, duration time.Duration) (latencies []float64, err error) {
	var mu sync.Mutex
	var failures []error
	var requests sync.WaitGroup
	ticker := time.NewTicker(time.Second / honestRate)
	defer ticker.Stop()
	for end := time.Now().Add(duration); time.Now().Before(end) && ctx.Err() == nil; <-ticker.C {
		requests.Go(func() {
			began := time.Now()
			err := getTokens(ctx, env)
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, err)
				return
			}
			latencies = append(latencies, took.Seconds()*1000)
		})
	}
	requests.Wait()
	if len(failures) > 0 {
		return nil, fmt.Errorf("%d honest requests failed, the first: %w", len(failures), failures[0])
	}
	return latencies, ctx.Err()
}

func getTokens(ctx context.Context, env stack.Env) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, env.GatewayURL+"/v2/tokens?chain-id=eip155:11155111", nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Api-Key", env.TestKey)
	request.Header.Set("X-Forwarded-For", "198.51.100.1")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

func printFlood(one, many []floodResult) {
	median := func(rounds []floodResult, pick func(floodResult) float64) float64 {
		var values []float64
		for _, r := range rounds {
			values = append(values, pick(r))
		}
		return median(values)
	}
	row := func(name, format string, pick func(floodResult) float64) {
		fmt.Printf("| %s | "+format+" | "+format+" |\n", name, median(one, pick), median(many, pick))
	}
	fmt.Printf("\n| unknown keys, medians | one address | many addresses |\n| --- | --- | --- |\n")
	row("tried a second", "%.0f", func(r floodResult) float64 { return float64(r.flood.sent()) / r.flood.took.Seconds() })
	for _, status := range []int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		row(fmt.Sprintf("answered %d, %%", status), "%.1f", func(r floodResult) float64 {
			return 100 * float64(r.flood.statuses[status]) / float64(r.flood.sent())
		})
	}
	row("looked up at core a second", "%.1f", func(r floodResult) float64 { return r.lookUps / r.flood.took.Seconds() })
	row("readings of the key changes a second", "%.1f", func(r floodResult) float64 { return r.readings / r.flood.took.Seconds() })
	for _, name := range measuredProcesses {
		row("CPU µs a key: "+name, "%.1f", func(r floodResult) float64 { return float64(r.cpu[name].Microseconds()) / float64(r.flood.sent()) })
	}
	for _, q := range []float64{0.5, 0.9, 0.99} {
		row(fmt.Sprintf("honest p%.0f alone, ms", q*100), "%.2f", func(r floodResult) float64 { return quantile(r.alone, q) })
		row(fmt.Sprintf("honest p%.0f beside, ms", q*100), "%.2f", func(r floodResult) float64 { return quantile(r.beside, q) })
	}
}

// quantile is the q-quantile of values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
