package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// flood sends requests with unknown keys at a rate.
type flood struct {
	url string
	// address is their client address (X-Forwarded-For), a random one for each request if it is empty.
	address     string
	rate, conns int
	duration    time.Duration

	// took and statuses are the results.
	took     time.Duration
	statuses map[int]int
}

func (f *flood) sent() int {
	sum := 0
	for n := range maps.Values(f.statuses) {
		sum += n
	}
	return sum
}

// run sends at the rate, or as fast as the responses if that is slower.
func (f *flood) run(ctx context.Context) error {
	f.statuses = map[int]int{}
	failures := make(chan error, f.conns)
	var mu sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for n := range f.conns {
		all.Go(func() {
			statuses, err := f.send(ctx, began.Add(time.Duration(n)*time.Second/time.Duration(f.rate)))
			mu.Lock()
			defer mu.Unlock()
			for status, count := range statuses {
				f.statuses[status] += count
			}
			if err != nil {
				failures <- err
			}
		})
	}
	all.Wait()
	f.took = time.Since(began)
	select {
	case err := <-failures:
		return fmt.Errorf("a connection with unknown keys: %w", err)
	default:
		return ctx.Err()
	}
}

// send sends one connection's share, the first request at next.
func (f *flood) send(ctx context.Context, next time.Time) (statuses map[int]int, err error) {
	host := strings.TrimPrefix(f.url, "http://")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(next.Add(f.duration + 30*time.Second)); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	statuses = map[int]int{}
	interval := time.Duration(f.conns) * time.Second / time.Duration(f.rate)
	for end := next.Add(f.duration); next.Before(end) && ctx.Err() == nil; next = next.Add(interval) {
		time.Sleep(time.Until(next))
		if time.Now().After(end) {
			break
		}
		_, err := fmt.Fprintf(conn, "GET /v2/tokens HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nX-Api-Key: %s\r\n\r\n",
			host, cmp.Or(f.address, fmt.Sprintf("10.%d.%d.%d", rand.IntN(256), rand.IntN(256), rand.IntN(256))), apikey.New(network.Live).Reveal())
		if err != nil {
			return statuses, err
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return statuses, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return statuses, err
		}
		statuses[response.StatusCode]++
	}
	return statuses, nil
}

// coreCounters returns how many unknown keys core has looked up and how often it has read the key changes, from its metrics.
func coreCounters(ctx context.Context, env stack.Env) (lookUps, readings float64, err error) {
	lookUps, err = readCounter(ctx, env.CoreMetricsURL, `intents_core_requests_total{route="POST `+wire.PathVerifyKey+`",status="404"`)
	if err != nil {
		return 0, 0, err
	}
	readings, err = readCounter(ctx, env.CoreMetricsURL, "intents_core_key_feed_readings_total ")
	return lookUps, readings, err
}
