package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
)

// allowedGrowth bounds the memory growth of a service while it sends a list of any length.
const allowedGrowth = 64 << 20

// stream reads one long list through the gateway and measures the memory of core and gateway.
func stream(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("stream", flag.ContinueOnError)
	rows := flags.Int("rows", 1_000_000, "how many intents the account has")
	readers := flags.Int("readers", 1, "how many read the list at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	data, err := os.MkdirTemp("", "loadtest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	fmt.Println("building and starting the stack")
	s, err := stack.Start(ctx, stack.Config{Data: data, Listen: "127.0.0.1:0", Ephemeral: true, OnDisk: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := fillAccount(ctx, s.Env(), *rows); err != nil {
		return err
	}
	if err := readList(ctx, s.Env(), 1); err != nil { // fills pools and caches
		return err
	}
	watched := map[string]*memory{
		"core":    {pid: s.Env().PID(stack.Core)},
		"gateway": {pid: s.Env().PID(stack.GatewayName(1))},
	}
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	for _, m := range watched {
		if m.before, err = resident(m.pid); err != nil {
			stop()
			return err
		}
		watchers.Go(func() { m.watch(watching) })
	}
	began := time.Now()
	failures := make([]error, *readers)
	var all sync.WaitGroup
	for n := range *readers {
		all.Go(func() { failures[n] = readList(ctx, s.Env(), *rows) })
	}
	all.Wait()
	took := time.Since(began)
	stop()
	watchers.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	fmt.Printf("\n%d intents read by %d at once in %.1f s\n\n| process | before, MiB | most, MiB | growth, MiB |\n| --- | --- | --- | --- |\n",
		*rows, *readers, took.Seconds())
	for _, name := range []string{"core", "gateway"} {
		m := watched[name]
		fmt.Printf("| %s | %d | %d | %d |\n", name, m.before>>20, m.peak>>20, (m.peak-m.before)>>20)
		if m.peak-m.before > allowedGrowth {
			err = errors.Join(err, fmt.Errorf("%s grew by more than %d MiB", name, allowedGrowth>>20))
		}
	}
	return err
}

// fillAccount inserts intents of the test key's account.
func fillAccount(ctx context.Context, env stack.Env, rows int) (err error) {
	conn, err := pgx.Connect(ctx, env.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var account uuid.UUID
	err = conn.QueryRow(ctx, "SELECT account_id FROM api_keys WHERE start = $1", env.TestKey[:12]).Scan(&account)
	if err != nil {
		return fmt.Errorf("find the account of the test key: %w", err)
	}
	return copyIntents(ctx, conn, account, 0, rows)
}

// readList reads GET /v2/transfers to its end. Fewer intents than want are an error.
func readList(ctx context.Context, env stack.Env, want int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, env.GatewayURL+"/v2/transfers", nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Api-Key", env.TestKey)
	request.Header.Set("Accept-Encoding", "identity")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body := bufio.NewReaderSize(response.Body, 64<<10)
	count := 0
	for {
		part, err := body.ReadSlice('}')
		count += bytes.Count(part, []byte(`"orderId"`))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("read the list: %w", err)
		}
	}
	if response.StatusCode != http.StatusOK || count < want {
		return fmt.Errorf("%s with %d intents, want %d", response.Status, count, want)
	}
	return nil
}

// memory is the resident memory of a process in bytes.
type memory struct {
	pid          int
	before, peak int64
}

func (m *memory) watch(ctx context.Context) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if now, err := resident(m.pid); err == nil {
			m.peak = max(m.peak, now)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// resident is the resident set size of a process, from /proc.
func resident(pid int) (int64, error) {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return pages * int64(os.Getpagesize()), nil
}
