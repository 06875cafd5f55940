package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"time"

	"intents.internal/deploy/stack"
)

const (
	// crowdTimeout is the gateway's read and write timeout here, so short that a turn sees what becomes of slow clients.
	crowdTimeout = 3 * time.Second
	// allowedRatio is how many times longer honest requests may take beside a crowd than alone, by their 99th percentile.
	allowedRatio = 2
	// restlessness is the least that is taken for the 99th percentile without a crowd. A single slice of the scheduler for
	// any other program on the CPU is as long, so that below it chance decides the ratio.
	restlessness = 3 * time.Millisecond
	// unrest is the share of the machine that others may take of a turn; where it is more, the hypervisor's other guests included,
	// their pauses are what is measured. patience is how often such a turn is taken again.
	unrest   = 0.05
	patience = 4
	// crowdRows is how many intents the account has, for lists that a slow reader does not finish.
	crowdRows = 20_000
	// keysOfAccount is how many keys one account may have.
	keysOfAccount = 100
)

// crowdFlags are the settings of crowd.
type crowdFlags struct {
	rounds, keys, idle, slow, flood, storm int
	rate                                   float64
	span                                   time.Duration
	out, only                              string
}

func parseCrowdFlags(args []string) (f crowdFlags, err error) {
	flags := flag.NewFlagSet("crowd", flag.ContinueOnError)
	flags.IntVar(&f.rounds, "rounds", 5, "how often each crowd comes")
	flags.DurationVar(&f.span, "time", 5*time.Second, "how long honest requests are measured beside it, and before it")
	flags.Float64Var(&f.rate, "rate", 200, "how many honest requests are made a second")
	flags.IntVar(&f.keys, "keys", 5000, "with how many API keys")
	flags.IntVar(&f.idle, "idle", 10_000, "how many connections idle")
	flags.IntVar(&f.slow, "slow", 1000, "how many clients are slow")
	flags.IntVar(&f.flood, "flood", 10_000, "how many bad keys are tried a second")
	flags.IntVar(&f.storm, "storm", 2000, "how many connections are opened and closed a second")
	flags.StringVar(&f.out, "out", "loadtest/out", "directory for the figures as JSON, and the log")
	flags.StringVar(&f.only, "only", "", "take only the crowds with this in their name")
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	if f.rounds < 1 || f.span < time.Second || f.rate < 1 || f.keys < 1000 || min(f.idle, f.slow, f.flood, f.storm) < 1 {
		return f, errors.New("rounds, rate and the sizes of crowds must be at least 1, keys 1000, time 1s")
	}
	return f, nil
}

// crowd measures what hostile crowds of clients do to the others.
func crowd(ctx context.Context, args []string) (err error) {
	f, err := parseCrowdFlags(args)
	if err != nil {
		return err
	}
	b, err := openCrowdBench(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	load := openLoop{connections: 32, rate: f.rate, span: f.span}
	rows, err := b.crowds(ctx, f)
	if err != nil {
		return err
	}
	for round := range f.rounds {
		fmt.Printf("round %d of %d\n", round+1, f.rounds)
		for n := range rows {
			r := rows[(round+n)%len(rows)]
			if r.Missing != "" || !strings.Contains(r.Name, f.only) {
				continue
			}
			if err := b.faceInPeace(ctx, load, r); err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
		}
	}
	return tellCrowds(f, rows)
}

// openCrowdBench starts the service with a gateway that has a CPU to itself, where there is more than one.
func openCrowdBench(ctx context.Context, f crowdFlags) (b *bench, err error) {
	b = &bench{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return b, err
	}
	if b.log, err = os.Create(filepath.Join(f.out, "crowd.log")); err != nil {
		return b, err
	}
	if b.dir, err = os.MkdirTemp("", "loadtest-"); err != nil {
		return b, err
	}
	if b.cores, err = divideCores(); err != nil {
		return b, err
	}
	// All that is started from here on inherits it.
	if err := pin(ctx, b.cores.rest, os.Getpid()); err != nil {
		return b, err
	}
	fmt.Println("building and starting the stack")
	b.stack, err = stack.Start(ctx, stack.Config{
		Data: filepath.Join(b.dir, "stack"), Listen: "127.0.0.1:0", Ephemeral: true, OnDisk: true, Log: quiet{b.log},
		// Their lines would be read on the CPU of those that are measured.
		CoreEnv: []string{"CORE_ACCESS_LOG=false"}, GatewayEnv: append(crowdSettings(b.cores), "GATEWAY_ACCESS_LOG=false"),
	})
	if err != nil {
		return b, err
	}
	b.env = b.stack.Env()
	if b.env.PID(stack.Redis) == 0 {
		return b, errors.New("this needs redis-server on PATH: the Redis within this program says nothing about speed")
	}
	b.gatewayAddress, b.gatewayPID = b.gateway(1)
	b.metricsURL = b.env.GatewayMetricsURL
	if err := pin(ctx, b.cores.proxy, b.gatewayPID); err != nil {
		return b, err
	}
	fmt.Printf("using %s; %s; %s\n", b.env.PostgresSource, b.env.RedisSource, b.cores)
	if b.keys, err = makeKeys(ctx, b.dir, b.env.DatabaseURL, b.env.TestKey, f.keys); err != nil {
		return b, err
	}
	fmt.Println("looking every key up once")
	return b, (&closedLoop{connections: 16}).warm(ctx, b.gatewayAddress, b.keys.good)
}

// otherAccount makes an account of its own for those who do harm with good keys, with as many keys as one may have and
// with lists that a slow reader does not finish.
func (b *bench) otherAccount(ctx context.Context) ([]string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	defer browser.CloseIdleConnections()
	var made struct{ Key string }
	for _, step := range []struct{ path, body string }{
		{"/auth/sign-up/email", `{"name":"Mallory","email":"mallory@example.com","password":"correct horse battery staple"}`},
		{"/auth/api-key/create", `{"name":"one","environment":"test"}`},
	} {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.env.GatewayURL+step.path, strings.NewReader(step.body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := browser.Do(request)
		if err != nil {
			return nil, err
		}
		err = json.NewDecoder(response.Body).Decode(&made)
		if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("make another account: POST %s: %s: %w", step.path, response.Status, err)
		}
	}
	env := b.env
	env.TestKey = made.Key
	if err := fillAccount(ctx, env, crowdRows); err != nil {
		return nil, err
	}
	more := randomKeys(keysOfAccount - 1)
	return append(reveal(more), made.Key), copyKeys(ctx, env.DatabaseURL, made.Key, more)
}

func crowdSettings(c cores) []string {
	settings := []string{
		"GATEWAY_READ_TIMEOUT=" + crowdTimeout.String(), "GATEWAY_WRITE_TIMEOUT=" + crowdTimeout.String(),
		"GATEWAY_STREAM_RATE=262144", "GATEWAY_KEY_TTL=1h",
		// So that bad keys can come from many addresses.
		"GATEWAY_TRUSTED_PROXIES=127.0.0.0/8",
	}
	if c.proxy != "" {
		settings = append(settings, "GOMAXPROCS=1")
	}
	return settings
}
