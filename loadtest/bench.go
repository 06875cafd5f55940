package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/embedded"
)

// bench is a stack with many keys on this machine, and the peers that its gateway is compared with.
type bench struct {
	dir    string
	log    *os.File
	secret string
	// account is the account that peers name to core.
	account uuid.UUID
	cpus    cpuSplit
	stack   *stack.Stack
	env     stack.Env
	keys    keyLists
	peers   []*embedded.Process

	// The gateway under test, and the upstream of it and its peers.
	gatewayAddress string
	gatewayPID     int
	metricsURL     string
	upstreamName   string
	upstream       string
	upstreamPIDs   []int
}

// openBench starts the stack on the CPUs that are not the proxy's. The log of the processes is a file in out.
func openBench(ctx context.Context, out string, keys int) (b *bench, err error) {
	b = newBench()
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if err := b.openFiles(out, "edge"); err != nil {
		return b, err
	}
	if b.cpus, err = splitCPUs(); err != nil {
		return b, err
	}
	// Child processes inherit the CPUs.
	if err := pin(ctx, b.cpus.others, os.Getpid()); err != nil {
		return b, err
	}
	if err := b.startStack(ctx); err != nil {
		return b, err
	}
	fmt.Printf("loading %d keys\n", keys)
	b.keys, err = makeKeys(ctx, b.dir, b.env.DatabaseURL, b.env.TestKey, keys)
	return b, err
}

// newBench creates a bench with a new secret and an account id that no database has.
func newBench() *bench { return &bench{secret: rand.Text() + rand.Text(), account: uuid.New()} }

// openFiles creates the working directory, and the log file of the processes in out.
func (b *bench) openFiles(out, name string) (err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if b.log, err = os.Create(filepath.Join(out, name+".log")); err != nil {
		return err
	}
	b.dir, err = os.MkdirTemp("", "loadtest-")
	return err
}

func (b *bench) startStack(ctx context.Context) (err error) {
	fmt.Println("building and starting the stack")
	b.stack, err = stack.Start(ctx, stack.Config{
		Data: filepath.Join(b.dir, "stack"), Listen: "127.0.0.1:0", Ephemeral: true, OnDisk: true, Log: requestLogFilter{b.log},
		CoreEnv:    []string{"CORE_GATEWAY_SECRET=" + b.secret, "GOMAXPROCS=" + strconv.Itoa(max(1, runtime.NumCPU()-1))},
		GatewayEnv: b.gatewayEnv(),
	})
	if err != nil {
		return err
	}
	b.env = b.stack.Env()
	if b.env.PID(stack.Redis) == 0 {
		return errors.New("this needs redis-server on PATH: miniredis is too slow to measure")
	}
	b.gatewayAddress, b.gatewayPID = strings.TrimPrefix(b.env.GatewayURL, "http://"), b.env.PID(stack.GatewayName(1))
	b.metricsURL = b.env.GatewayMetricsURL
	b.upstreamName = stack.Core
	b.upstream, b.upstreamPIDs = strings.TrimPrefix(b.env.CoreURL, "http://"), []int{b.env.PID(stack.Core)}
	fmt.Printf("using %s; %s; %s\n", b.env.PostgresSource, b.env.RedisSource, b.cpus)
	return nil
}

func (b *bench) gatewayEnv() []string {
	return []string{
		"GATEWAY_CORE_SECRET=" + b.secret,
		"GOMAXPROCS=1",
		"GATEWAY_ACCESS_LOG=false",
		// All keys are looked up at the same time, before the measurement, and must not expire during it.
		"GATEWAY_KEY_TTL=1h",
	}
}

// requestLogFilter drops core's log lines of requests, which would make the log file the bottleneck.
type requestLogFilter struct{ out io.Writer }

func (q requestLogFilter) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(`"msg":"request"`)) {
		return len(line), nil
	}
	return q.out.Write(line)
}

// startPeer starts a program and waits until it responds at every address.
func (b *bench) startPeer(ctx context.Context, c embedded.Command, addresses ...string) (*embedded.Process, error) {
	c.OrphanSignal = stopSignal // after a SIGKILL of nginx's master its worker keeps running
	c.Output = func(line string) { fmt.Fprintf(b.log, "%-9s | %s\n", c.Name, line) }
	process, err := embedded.StartProcess(c)
	if err != nil {
		return nil, err
	}
	b.peers = append(b.peers, process)
	for _, address := range addresses {
		if err := awaitResponse(ctx, process, address); err != nil {
			return nil, fmt.Errorf("start %s: %w%s", c.Name, err, process.Tail())
		}
	}
	return process, nil
}

// fallbackDecisions returns how many rate limit decisions the gateway under test made without Redis. They cost less CPU time.
func (b *bench) fallbackDecisions(ctx context.Context) (float64, error) {
	return readCounter(ctx, b.metricsURL, `intents_gateway_limit_decisions_total{decision="fallback_`)
}

// readCounter is the sum of the counters whose line starts with prefix.
func readCounter(ctx context.Context, url, prefix string) (sum float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), prefix) {
			continue
		}
		value, err := strconv.ParseFloat(lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", prefix, err)
		}
		sum += value
	}
	return sum, lines.Err()
}

func (b *bench) close() error {
	var errs []error
	for _, peer := range b.peers {
		errs = append(errs, peer.Stop(stopSignal, 5*time.Second))
	}
	if b.stack != nil {
		errs = append(errs, b.stack.Stop())
	}
	if b.log != nil {
		errs = append(errs, b.log.Close())
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}
