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

const (
	// unknownBudget is the gateway's GATEWAY_UNKNOWN_KEYS_PER_MINUTE: a bucket of so many that refills as fast a minute.
	unknownBudget = 60
	// honestRate is how many requests a second honest clients make meanwhile.
	honestRate = 100
)

// guessing is what a round measured.
type guessing struct {
	flood           *flood
	lookUps, budget float64
	quiet, during   []float64 // latencies of honest requests, in milliseconds
}

// keys throws unknown keys at a gateway and counts what core hears of them.
func keys(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("keys", flag.ContinueOnError)
	rate := flags.Int("rate", 10_000, "how many unknown keys are tried a second")
	span := flags.Duration("time", 10*time.Second, "how long they are tried")
	conns := flags.Int("conns", 64, "on how many connections")
	rounds := flags.Int("rounds", 3, "how often, each time from another address")
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
		// So that the load can come from addresses of its own.
		GatewayEnv: []string{"GATEWAY_TRUSTED_PROXIES=127.0.0.0/8", "GATEWAY_ACCESS_LOG=false", fmt.Sprintf("GATEWAY_UNKNOWN_KEYS_PER_MINUTE=%d", unknownBudget)},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := unlimit(ctx, s.Env()); err != nil {
		return err
	}
	results := make([]guessing, *rounds)
	for round := range results {
		attack := &flood{
			url: s.Env().GatewayURL, address: fmt.Sprintf("203.0.113.%d", round%250+1), rate: *rate, span: *span, conns: *conns,
		}
		if results[round], err = guess(ctx, s.Env(), attack); err != nil {
			return err
		}
		r := results[round]
		fmt.Printf("round %d of %d: %d keys in %.1f s, %.0f look-ups, honest p99 %.1f ms, before that %.1f ms\n",
			round+1, *rounds, r.flood.sent(), r.flood.took.Seconds(), r.lookUps, quantile(r.during, 0.99), quantile(r.quiet, 0.99))
	}
	tellGuessing(results)
	for _, r := range results {
		if r.lookUps > r.budget {
			err = errors.Join(err, fmt.Errorf("core was asked %.0f times, the budget is %.0f", r.lookUps, r.budget))
		}
	}
	return err
}

// unlimit takes the rate limit off the test key, whose requests are what is measured.
func unlimit(ctx context.Context, env stack.Env) (err error) {
	conn, err := pgx.Connect(ctx, env.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	_, err = conn.Exec(ctx, "UPDATE api_keys SET limit_requests = 1000000 WHERE start = $1", env.TestKey[:12])
	if err != nil {
		return fmt.Errorf("raise the limit of the test key: %w", err)
	}
	return nil
}

// guess measures one round: honest traffic alone, then beside the flood.
func guess(ctx context.Context, env stack.Env, attack *flood) (g guessing, err error) {
	g.flood = attack
	if g.quiet, err = honest(ctx, env, attack.span); err != nil {
		return g, err
	}
	before, err := lookUpsAtCore(ctx, env)
	if err != nil {
		return g, err
	}
	var during sync.WaitGroup
	var honestErr error
	during.Go(func() { g.during, honestErr = honest(ctx, env, attack.span) })
	floodErr := attack.run(ctx)
	during.Wait()
	if err := errors.Join(floodErr, honestErr); err != nil {
		return g, err
	}
	after, err := lookUpsAtCore(ctx, env)
	g.lookUps = after - before
	g.budget = unknownBudget + math.Ceil(attack.took.Minutes()*unknownBudget)
	return g, err
}

// honest makes requests with the test key at an even pace and gives how long each took, in milliseconds.
func honest(ctx context.Context, env stack.Env, span time.Duration) (latencies []float64, err error) {
	var mu sync.Mutex
	var failures []error
	var requests sync.WaitGroup
	ticker := time.NewTicker(time.Second / honestRate)
	defer ticker.Stop()
	for end := time.Now().Add(span); time.Now().Before(end) && ctx.Err() == nil; <-ticker.C {
		requests.Go(func() {
			began := time.Now()
			err := askForTokens(ctx, env)
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
		return nil, fmt.Errorf("%d honest requests failed, one by: %w", len(failures), failures[0])
	}
	return latencies, ctx.Err()
}

func askForTokens(ctx context.Context, env stack.Env) error {
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

func tellGuessing(results []guessing) {
	column := func(pick func(guessing) float64) float64 {
		var values []float64
		for _, r := range results {
			values = append(values, pick(r))
		}
		return median(values)
	}
	fmt.Printf("\n| unknown keys from one address | median |\n| --- | --- |\n")
	for _, row := range []struct {
		name string
		pick func(guessing) float64
	}{
		{"tried a second", func(r guessing) float64 { return float64(r.flood.sent()) / r.flood.took.Seconds() }},
		{"answered 403", func(r guessing) float64 { return float64(r.flood.statuses[http.StatusForbidden]) }},
		{"answered 429", func(r guessing) float64 { return float64(r.flood.statuses[http.StatusTooManyRequests]) }},
		{"answered otherwise", func(r guessing) float64 {
			return float64(r.flood.sent() - r.flood.statuses[http.StatusForbidden] - r.flood.statuses[http.StatusTooManyRequests])
		}},
		{"looked up at core", func(r guessing) float64 { return r.lookUps }},
		{"the budget", func(r guessing) float64 { return r.budget }},
	} {
		fmt.Printf("| %s | %.0f |\n", row.name, column(row.pick))
	}
	fmt.Printf("\n| honest requests, milliseconds | alone | meanwhile |\n| --- | --- | --- |\n")
	for _, q := range []float64{0.5, 0.9, 0.99} {
		fmt.Printf("| %.0f in 100 within | %.2f | %.2f |\n", q*100,
			column(func(r guessing) float64 { return quantile(r.quiet, q) }), column(func(r guessing) float64 { return quantile(r.during, q) }))
	}
}

// quantile is the value that the share q of the values is not above.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
