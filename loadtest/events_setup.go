package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
)

const (
	// pollsPerKey and pollsPerAccount are the gateway's limits of concurrent long polls.
	pollsPerKey, pollsPerAccount = 2, 8
)

// benchAccount is an account with its test keys.
type benchAccount struct {
	id   uuid.UUID
	keys []string
}

// makeAccounts inserts accounts with keysEach test keys each, with limits above the load.
func makeAccounts(ctx context.Context, env stack.Env, count, keysEach int) (accounts []benchAccount, err error) {
	conn, err := pgx.Connect(ctx, env.DatabaseURL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	accounts = make([]benchAccount, count)
	for n := range accounts {
		owner := uuid.New()
		_, err := conn.Exec(ctx, `INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at) VALUES ($1, 'load', $2, '', now(), now())`,
			owner, fmt.Sprintf("load-%d@example.com", n))
		if err != nil {
			return nil, fmt.Errorf("insert an account: %w", err)
		}
		keys := randomKeys(keysEach)
		if err := copyKeys(ctx, conn, owner, keys); err != nil {
			return nil, err
		}
		accounts[n] = benchAccount{owner, reveal(keys)}
	}
	if _, err := conn.Exec(ctx, "UPDATE api_keys SET limit_requests = 1000000"); err != nil {
		return nil, fmt.Errorf("raise the limits: %w", err)
	}
	if err := raiseAccountLimits(ctx, conn); err != nil {
		return nil, err
	}
	return accounts, nil
}

// createEndpoints creates the accounts' endpoints through the API.
func (b *eventsBench) createEndpoints(ctx context.Context) error {
	fmt.Println("creating endpoints")
	for n, account := range b.accounts[:b.endpoints] {
		body, err := json.Marshal(map[string]string{"url": fmt.Sprintf("%s/%d", b.receiver.url, n)})
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.stack.Env().GatewayURL+"/v2/webhooks", bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("X-Api-Key", account.keys[0])
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusCreated {
			return errors.Join(err, fmt.Errorf("create an endpoint: %s %s", response.Status, text))
		}
	}
	return nil
}

// idlePolls measures the memory of idle long polls.
func (b *eventsBench) idlePolls(ctx context.Context) error {
	if b.polls == 0 {
		return nil
	}
	pids := map[string]int{"gateway": b.stack.Env().PID(stack.GatewayName(1)), "core": b.stack.Env().PID(stack.CoreName(1))}
	var before, after [2]int64
	read := func(into *[2]int64) (err error) {
		for n, name := range []string{"gateway", "core"} {
			if into[n], err = resident(pids[name]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := read(&before); err != nil {
		return err
	}
	fmt.Printf("opening %d long polls\n", b.polls)
	polling, stop := context.WithCancel(ctx)
	defer stop()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.polls}}
	defer client.CloseIdleConnections()
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()
	failed := make(chan error, b.polls)
	slots := make(chan struct{}, 16) // limits concurrent connects
	for n := range b.polls {
		account := b.accounts[n/pollsPerAccount]
		r := &feedReader{url: b.stack.Env().GatewayURL, key: account.keys[n%pollsPerAccount/pollsPerKey], client: client}
		slots <- struct{}{}
		running.Go(func() {
			r.run(polling, func() { <-slots })
			if polling.Err() == nil {
				failed <- r.err
			}
		})
	}
	// Long enough for each poll to have been answered empty once and sent again.
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(35 * time.Second):
	}
	if err := read(&after); err != nil {
		return err
	}
	stop()
	running.Wait()
	client.CloseIdleConnections()
	select { // the gateway checks for disconnected clients once a second
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(3 * time.Second):
	}
	const mib = 1 << 20
	fmt.Printf("\n| %d idle long polls, MiB | before | with them | more |\n| --- | --- | --- | --- |\n", b.polls)
	for n, name := range []string{"gateway", "core"} {
		fmt.Printf("| %s | %d | %d | %d |\n", name, before[n]/mib, after[n]/mib, (after[n]-before[n])/mib)
	}
	return nil
}

// measuredProcesses are the processes whose CPU time is measured.
var measuredProcesses = []string{stack.GatewayName(1), stack.CoreName(1), stack.Postgres, stack.Redis}

// stackTimes returns the CPU times of a stack's processes and their current children.
func stackTimes(env stack.Env) (map[string]time.Duration, error) {
	processes := map[string][]int{}
	for _, name := range measuredProcesses {
		processes[name] = processTree(env.PID(name))
	}
	return cpuTimes(processes)
}
