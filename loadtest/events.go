package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/help"
)

// eventsFlags are the flags of the scenario events.
type eventsFlags struct {
	endpoints, readers, rate, sustained, polls, rounds int
	duration                                           time.Duration
}

// events measures the feed and the webhooks: the latency until events are read and delivered, the effect of a dead endpoint on
// the others, the sustained rate, and the cost of idle long polls and of the events of a POST.
func events(ctx context.Context, args []string) (err error) {
	var f eventsFlags
	flags := help.FlagSet("events", args)
	flags.IntVar(&f.endpoints, "endpoints", 1000, "webhook endpoints, each of an account of its own")
	flags.IntVar(&f.readers, "readers", 50, "accounts whose feed is read by long polls")
	flags.IntVar(&f.rate, "rate", 200, "events a second while latencies are measured")
	flags.IntVar(&f.sustained, "sustained", 1100, "events a second while the throughput is measured")
	flags.IntVar(&f.polls, "polls", 10_000, "idle long polls")
	flags.IntVar(&f.rounds, "rounds", 3, "rounds of all latencies, with and without a dead endpoint")
	flags.DurationVar(&f.duration, "duration", 15*time.Second, "length of each measurement")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if f.endpoints < 2 || f.readers < 1 || f.readers >= f.endpoints {
		return errors.New("-endpoints must be 2 or more, and -readers 1 or more and fewer")
	}
	b, err := openEventsBench(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.idlePolls(ctx); err != nil {
		return err
	}
	if err := b.createEndpoints(ctx); err != nil {
		return err
	}
	if err := b.latencies(ctx); err != nil {
		return err
	}
	return b.throughput(ctx)
}

// eventsBench is a stack with accounts, endpoints and their receiver.
type eventsBench struct {
	eventsFlags
	dir      string
	stack    *stack.Stack
	accounts []benchAccount
	receiver *receiver
}

func openEventsBench(ctx context.Context, f eventsFlags) (b *eventsBench, err error) {
	b = &eventsBench{eventsFlags: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.receiver, err = startReceiver(); err != nil {
		return b, err
	}
	if b.dir, b.stack, err = startEventsStack(ctx); err != nil {
		return b, err
	}
	fmt.Println("making accounts and keys")
	b.accounts, err = makeAccounts(ctx, b.stack.Env(), max(f.endpoints, (f.polls+pollsPerAccount-1)/pollsPerAccount), pollsPerAccount/pollsPerKey)
	return b, err
}

// startEventsStack starts a durable stack.
func startEventsStack(ctx context.Context) (dir string, s *stack.Stack, err error) {
	if dir, err = os.MkdirTemp("", "loadtest-events-"); err != nil {
		return "", nil, err
	}
	fmt.Println("building and starting the stack")
	s, err = stack.Start(ctx, stack.Config{
		Data: dir, Listen: "127.0.0.1:0",
		CoreEnv: []string{"CORE_ACCESS_LOG=false"},
		GatewayEnv: []string{
			"GATEWAY_ACCESS_LOG=false", "GATEWAY_MAX_CONNS=20000", "GATEWAY_MAX_CONNS_PER_IP=0", "GATEWAY_MAX_POLLS=20000", "GATEWAY_LIMIT_BUDGET=1s",
		},
	})
	return dir, s, err
}

func (b *eventsBench) close() error {
	var errs []error
	if b.stack != nil {
		errs = append(errs, b.stack.Stop())
	}
	if b.receiver != nil {
		errs = append(errs, b.receiver.close())
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// address is the gateway's host:port.
func (b *eventsBench) address() string {
	return strings.TrimPrefix(b.stack.Env().GatewayURL, "http://")
}

// post returns the requests that create intents, for the accounts in turn.
func post(address string, accounts []benchAccount) func(n int) []byte {
	return func(n int) []byte {
		body := newTransferBody()
		return fmt.Appendf(nil, "POST /v2/transfers HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			address, accounts[n%len(accounts)].keys[0], len(body), body)
	}
}

// latencies measures, in turns, the latency of reads and deliveries with all endpoints alive and with one dead.
func (b *eventsBench) latencies(ctx context.Context) error {
	var alive, dead []eventTimes
	for round := range b.rounds {
		for _, broken := range []bool{false, true} {
			b.receiver.dead.Store(broken)
			times, err := b.run(ctx, b.rate, b.accounts[:b.endpoints], b.accounts[1:b.readers+1])
			if err != nil {
				return err
			}
			fmt.Printf("round %d of %d, dead endpoint: %t: %s\n", round+1, b.rounds, broken, times)
			if broken {
				dead = append(dead, times)
			} else {
				alive = append(alive, times)
			}
		}
	}
	b.receiver.dead.Store(false)
	fmt.Printf("\n| %d events a second, %d endpoints, ms from the event's timestamp | p50 | p99 |\n| --- | --- | --- |\n", b.rate, b.endpoints)
	for _, r := range []struct {
		name  string
		turns []eventTimes
		of    func(eventTimes) []float64
	}{
		{"answer of a long poll", alive, func(t eventTimes) []float64 { return t.read }},
		{"first attempt", alive, func(t eventTimes) []float64 { return t.delivered }},
		{"first attempt, one endpoint dead", dead, func(t eventTimes) []float64 { return t.delivered }},
	} {
		at := func(q float64) float64 {
			return medianOf(r.turns, func(t eventTimes) float64 { return quantile(r.of(t), q) })
		}
		fmt.Printf("| %s | %.0f | %.0f |\n", r.name, at(0.5), at(0.99))
	}
	return nil
}

// throughput measures a rate at which every event goes through the feed and a webhook.
func (b *eventsBench) throughput(ctx context.Context) error {
	before, err := stackTimes(b.stack.Env())
	if err != nil {
		return err
	}
	accounts := b.accounts[1 : b.readers+1]
	times, err := b.run(ctx, b.sustained, accounts, accounts)
	if err != nil {
		return err
	}
	after, err := stackTimes(b.stack.Env())
	if err != nil {
		return err
	}
	fmt.Printf("\n| %d POSTs a second, each read by a long poll and delivered | value |\n| --- | --- |\n", b.sustained)
	fmt.Printf("| POSTs answered a second | %.0f |\n", times.posts.Rate)
	fmt.Printf("| read, delivered | %d, %d |\n", len(times.read), len(times.delivered))
	fmt.Printf("| after the last POST, until all were read and delivered | %s |\n", times.rest.Round(time.Millisecond))
	fmt.Printf("| read: p50, p99 | %.0f, %.0f ms |\n", quantile(times.read, 0.5), quantile(times.read, 0.99))
	fmt.Printf("| first attempt: p50, p99 | %.0f, %.0f ms |\n", quantile(times.delivered, 0.5), quantile(times.delivered, 0.99))
	for _, name := range measuredProcesses {
		fmt.Printf("| CPU µs an event, %s | %.0f |\n", name, float64((after[name]-before[name]).Microseconds())/float64(len(times.delivered)))
	}
	return nil
}
