package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/postgres"
)

// singleInsert is the store's statement for one row: an intent and its first event.
const singleInsert = `\set n random(1, 1000000000)
WITH inserted AS (
  INSERT INTO transfers (id, account_id, key_id, type, status, order_id,
    source_chain, source_account, source_token, source_amount,
    destination_chain, destination_account, destination_token, destination_amount,
    origin_domain, destination_domain, origin_settler, destination_settler, deadline, reference, created_at, updated_at)
  VALUES (gen_random_uuid(), '%[1]s', '%[1]s', 'transfer', 'created', sha256((:n || random()::text)::bytea),
    'eip155:11155111', '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE', :n,
    'eip155:11155111', '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE', :n,
    11155111, 11155111, '', '', now() + interval '1 hour', 'order-' || :n, now(), now())
  RETURNING id, account_id, status, created_at)
INSERT INTO events (account_id, transfer_id, to_status, occurred_at)
SELECT account_id, id, status, created_at FROM inserted;
`

// writes compares the store's batches with one transaction a row, in turns on one server.
func writes(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("writes", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "turns of each")
	duration := flags.Duration("time", 8*time.Second, "duration of a turn")
	clients := flags.Int("clients", 64, "number of concurrent clients")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pgbench, err := findPgbench()
	if err != nil {
		return err
	}
	d, err := openDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	script := filepath.Join(d.dir, "insert.sql")
	account := uuid.New()
	if err := os.WriteFile(script, fmt.Appendf(nil, singleInsert, account), 0o600); err != nil {
		return err
	}
	var single, shared []float64
	for round := range *rounds {
		one, err := pgbenchRate(ctx, pgbench, d.server.URL, script, *clients, *duration)
		if err != nil {
			return err
		}
		many, err := storeRate(ctx, d.store, *clients, *duration)
		if err != nil {
			return err
		}
		single, shared = append(single, one), append(shared, many)
		fmt.Printf("round %d of %d: pgbench %.0f/s, store %.0f/s, ratio %.2f\n", round+1, *rounds, one, many, many/one)
	}
	fmt.Printf("\n| durable inserts, %d clients | median a second |\n| --- | --- |\n", *clients)
	fmt.Printf("| pgbench, prepared, one transaction a row | %.0f |\n", median(single))
	fmt.Printf("| the store, shared commits | %.0f |\n", median(shared))
	fmt.Printf("| ratio | %.2f |\n", median(shared)/median(single))
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// storeRate inserts through the store for duration and returns the acknowledged rows a second.
func storeRate(ctx context.Context, store *postgres.Store, clients int, duration time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	known, account := sepolia(), uuid.New()
	var stored atomic.Int64
	var failed atomic.Pointer[error]
	began := time.Now()
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for n := client; ctx.Err() == nil; n += clients {
				intent, err := newIntent(account, n, known)
				if err == nil {
					_, err = store.InsertTransfer(ctx, intent, postgres.Idempotency{})
				}
				if err != nil && ctx.Err() == nil {
					failed.Store(&err)
					return
				}
				if err == nil {
					stored.Add(1)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(stored.Load()) / time.Since(began).Seconds(), nil
}

var pgbenchTPS = regexp.MustCompile(`tps = ([0-9.]+) \(without`)

func pgbenchRate(ctx context.Context, pgbench, databaseURL, script string, clients int, duration time.Duration) (float64, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return 0, err
	}
	command := exec.CommandContext(ctx, pgbench, "-n", "-M", "prepared", "-f", script, "-c", strconv.Itoa(clients), "-j", "2",
		"-T", strconv.Itoa(int(duration.Seconds())), "-h", u.Query().Get("host"), "-U", u.User.Username(), u.Path[1:])
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		return 0, fmt.Errorf("run pgbench: %w\n%s", err, out.String())
	}
	match := pgbenchTPS.FindSubmatch(out.Bytes())
	if match == nil {
		return 0, fmt.Errorf("pgbench printed no rate:\n%s", out.String())
	}
	return strconv.ParseFloat(string(match[1]), 64)
}

// findPgbench looks on PATH and in Debian's directories.
func findPgbench() (string, error) {
	if path, err := exec.LookPath("pgbench"); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) == 0 {
		return "", errors.New("pgbench is not installed; on Debian: apt-get install postgresql")
	}
	return found[len(found)-1], nil
}
