package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// flood is a row of requests with unknown keys that seem to come from one address.
type flood struct {
	url, address string
	rate, conns  int
	span         time.Duration

	// took and statuses are the outcome.
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

// run sends at the rate, or as fast as answers come where that is slower.
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

// send is one connection's share, from its first request on.
func (f *flood) send(ctx context.Context, next time.Time) (statuses map[int]int, err error) {
	host := strings.TrimPrefix(f.url, "http://")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(next.Add(f.span + 30*time.Second)); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	statuses = map[int]int{}
	apart := time.Duration(f.conns) * time.Second / time.Duration(f.rate)
	for end := next.Add(f.span); next.Before(end) && ctx.Err() == nil; next = next.Add(apart) {
		time.Sleep(time.Until(next))
		if time.Now().After(end) {
			break
		}
		_, err := fmt.Fprintf(conn, "GET /v2/tokens HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nX-Api-Key: %s\r\n\r\n",
			host, f.address, apikey.New(network.Live).Reveal())
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

// lookUpsAtCore is how many unknown keys core was asked for so far, by its own metrics.
func lookUpsAtCore(ctx context.Context, env stack.Env) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, env.CoreMetricsURL, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	sum := 0.0
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), `core_requests_total{route="POST `+wire.PathVerifyKey+`",status="404"`) {
			continue
		}
		_, value, _ := strings.Cut(lines.Text(), "} ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("read core's metrics: %w", err)
		}
		sum += n
	}
	return sum, lines.Err()
}
