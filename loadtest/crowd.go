package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	// crowdTimeout is the gateway's read and write timeout, shorter than a turn, so that slow clients are disconnected in it.
	crowdTimeout = 3 * time.Second
	// crowdRows is how many intents the crowd's account has, so many that a slow reader does not finish the list.
	crowdRows = 20_000
	// keysOfAccount is the bound of keys of an account.
	keysOfAccount = 100
)

// crowdFlags are the settings of crowd.
type crowdFlags struct {
	rounds, keys, idle, slow, flood, storm int
	rate                                   float64
	duration                               time.Duration
	out, only                              string
}

func parseCrowdFlags(args []string) (f crowdFlags, err error) {
	flags := flag.NewFlagSet("crowd", flag.ContinueOnError)
	flags.IntVar(&f.rounds, "rounds", 3, "how often each crowd comes")
	flags.DurationVar(&f.duration, "time", 5*time.Second, "how long honest requests are measured alone, and beside the crowd")
	flags.Float64Var(&f.rate, "rate", 200, "how many honest requests are made a second")
	flags.IntVar(&f.keys, "keys", 5000, "with how many API keys")
	flags.IntVar(&f.idle, "idle", 10_000, "how many connections are idle or silent")
	flags.IntVar(&f.slow, "slow", 1000, "how many clients are slow")
	flags.IntVar(&f.flood, "flood", 10_000, "how many bad keys are tried a second")
	flags.IntVar(&f.storm, "storm", 2000, "how many connections are opened and closed a second")
	flags.StringVar(&f.out, "out", "loadtest/out", "directory for the log")
	flags.StringVar(&f.only, "only", "", "take only the crowds with this in their name")
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	if f.rounds < 1 || f.duration < time.Second || f.rate < 1 || f.keys < 1000 || min(f.idle, f.slow, f.flood, f.storm) < 1 {
		return f, errors.New("rounds, rate and the sizes of crowds must be at least 1, keys 1000, time 1s")
	}
	return f, nil
}

// crowd measures the effect of crowds of abusive clients on honest ones.
func crowd(ctx context.Context, args []string) (err error) {
	f, err := parseCrowdFlags(args)
	if err != nil {
		return err
	}
	b, err := openBench(ctx, f.out, "crowd", 1, f.keys, true,
		"GATEWAY_READ_TIMEOUT="+crowdTimeout.String(), "GATEWAY_WRITE_TIMEOUT="+crowdTimeout.String(), "GATEWAY_STREAM_RATE=262144",
		"GATEWAY_TRUSTED_PROXIES=127.0.0.0/8") // for X-Forwarded-For of requests with unknown keys
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := pin(ctx, b.cpus.proxy, b.gatewayPID); err != nil {
		return err
	}
	own, err := b.createAccount(ctx)
	if err != nil {
		return err
	}
	fmt.Println("looking every key up once")
	if err := (&closedLoop{template: tokensRequest, connections: 16}).warm(ctx, b.gatewayAddress, b.keys.good); err != nil {
		return err
	}
	load := openLoop{connections: 32, rate: f.rate, duration: f.duration}
	kinds := crowdKinds(f, own)
	for round := range f.rounds {
		for n := range kinds {
			k := kinds[(round+n)%len(kinds)]
			if !strings.Contains(k.name, f.only) {
				continue
			}
			if err := b.measureBeside(ctx, load, k); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
		fmt.Printf("round %d of %d is done\n", round+1, f.rounds)
	}
	printCrowds(f, kinds)
	return nil
}

// createAccount creates the account of the crowds, with long lists and as many keys as an account may have.
func (b *bench) createAccount(ctx context.Context) (keys []string, err error) {
	conn, err := pgx.Connect(ctx, b.env.DatabaseURL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	owner := uuid.New()
	if _, err := conn.Exec(ctx, `INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at)
		VALUES ($1, 'Mallory', 'mallory@example.com', '', now(), now())`, owner); err != nil {
		return nil, fmt.Errorf("create the crowd's account: %w", err)
	}
	if err := copyIntents(ctx, conn, owner, 0, crowdRows); err != nil {
		return nil, err
	}
	made := randomKeys(keysOfAccount)
	return reveal(made), copyKeys(ctx, conn, owner, made)
}

// crowdTurn is the result of one turn. requests and refused are the crowd's.
type crowdTurn struct {
	alone, beside     constantResult
	requests, refused int64
}

// measureBeside measures honest requests alone, and then beside a crowd.
func (b *bench) measureBeside(ctx context.Context, load openLoop, k *crowdKind) (err error) {
	var t crowdTurn
	if t.alone, err = load.run(ctx, b.gatewayAddress, b.honestRequest); err != nil {
		return fmt.Errorf("honest requests alone: %w", err)
	}
	before, err := b.openConns(ctx)
	if err != nil {
		return err
	}
	stop := k.start(ctx, b.gatewayAddress)
	t.beside, err = load.run(ctx, b.gatewayAddress, b.honestRequest)
	t.requests, t.refused = stop()
	if err != nil {
		return fmt.Errorf("honest requests beside the crowd: %w", err)
	}
	k.turns = append(k.turns, t)
	return b.awaitConnsClosed(ctx, before)
}

// honestRequest is the n-th honest request: three in four get tokens, the fourth a page of intents.
func (b *bench) honestRequest(n int) []byte {
	if n%4 != 0 {
		return b.keys.good.request(tokensRequest, n)
	}
	return []byte("GET /v2/transfers?limit=10 HTTP/1.1\r\nHost: loadtest\r\nX-Api-Key: " + b.keys.good.keys[n%len(b.keys.good.keys)] + "\r\n\r\n")
}

func (b *bench) openConns(ctx context.Context) (float64, error) {
	return readCounter(ctx, b.metricsURL, "intents_gateway_connections_open ")
}

// awaitConnsClosed waits until the gateway has no more open connections than before.
func (b *bench) awaitConnsClosed(ctx context.Context, had float64) error {
	for deadline := time.Now().Add(30 * time.Second); ctx.Err() == nil; pause(50 * time.Millisecond) {
		open, err := b.openConns(ctx)
		if err != nil || open <= had {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%.0f connections of the crowd are still open 30 s after its end", open-had)
		}
	}
	return ctx.Err()
}

// printCrowds prints the medians over the rounds.
func printCrowds(f crowdFlags, kinds []*crowdKind) {
	fmt.Printf("\n| crowd beside %.0f honest requests/s | its requests | refused | honest p50 alone, ms | beside | p99 alone, ms | beside | ratio | "+
		"sent late, p99 |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", f.rate)
	for _, k := range kinds {
		if len(k.turns) == 0 {
			continue
		}
		medianOf := func(figure func(crowdTurn) float64) float64 {
			values := make([]float64, len(k.turns))
			for n, t := range k.turns {
				values[n] = figure(t)
			}
			return median(values)
		}
		fmt.Printf("| %s | %.0f | %.0f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", k.name,
			medianOf(func(t crowdTurn) float64 { return float64(t.requests) }), medianOf(func(t crowdTurn) float64 { return float64(t.refused) }),
			medianOf(func(t crowdTurn) float64 { return p50(t.alone) }), medianOf(func(t crowdTurn) float64 { return p50(t.beside) }),
			medianOf(func(t crowdTurn) float64 { return p99(t.alone) }), medianOf(func(t crowdTurn) float64 { return p99(t.beside) }),
			medianOf(func(t crowdTurn) float64 { return p99(t.beside) / p99(t.alone) }),
			medianOf(func(t crowdTurn) float64 { return milliseconds(t.beside.LateP99) }))
	}
}
