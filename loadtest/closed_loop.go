package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// loaded is what one span of load came to.
type loaded struct {
	requests int
	refused  int // answered other than 2xx
	took     time.Duration
	generate time.Duration // CPU time of a load generator that has ended by now
	p50, p99 time.Duration
}

// closedLoop makes requests with a list's keys over a fixed number of connections, each sending its next request when it
// has its answer, and starts at a random place in the list.
type closedLoop struct {
	wrk, script string // empty where wrk is not installed: then this program makes the load
	connections int
	span        time.Duration
}

const wrkScript = `-- Walks a file of API keys, from a place that is given, and prints one line that a program can read.
local requests, n = {}, 0
function init(args)
  for key in io.lines(args[1]) do
    requests[#requests + 1] = "GET " .. args[3] .. " HTTP/1.1\r\nHost: loadtest\r\nX-Api-Key: " .. key .. "\r\n\r\n"
  end
  n = tonumber(args[2]) % #requests
end
function request()
  n = n % #requests + 1
  return requests[n]
end
function done(summary, latency)
  local e = summary.errors
  print(string.format("loaded %d %d %d %d %d %d", summary.requests, e.status, e.connect + e.read + e.write + e.timeout,
    summary.duration, latency:percentile(50), latency:percentile(99)))
end
`

func newClosedLoop(dir string, connections int, span time.Duration) (*closedLoop, error) {
	c := &closedLoop{connections: connections, span: span}
	var err error
	if c.wrk, err = exec.LookPath("wrk"); err != nil {
		return c, nil //nolint:nilerr // without wrk this program makes the load
	}
	c.script = filepath.Join(dir, "keys.lua")
	return c, os.WriteFile(c.script, []byte(wrkScript), 0o600)
}

func (c *closedLoop) String() string {
	if c.wrk == "" {
		return fmt.Sprintf("load by this program (wrk is not installed), %d connections", c.connections)
	}
	return fmt.Sprintf("load by wrk, one thread, %d connections", c.connections)
}

func (c *closedLoop) run(ctx context.Context, address string, list *keyList) (loaded, error) {
	start := rand.IntN(len(list.keys))
	if c.wrk == "" {
		return c.runHere(ctx, address, list, start)
	}
	command := exec.CommandContext(ctx, c.wrk, "-t1", "-c"+strconv.Itoa(c.connections),
		"-d"+strconv.Itoa(int(c.span.Seconds()))+"s", "-s", c.script, "http://"+address, "--", list.path, strconv.Itoa(start), target)
	out, err := command.CombinedOutput()
	if err != nil {
		return loaded{}, fmt.Errorf("run wrk: %w\n%s", err, out)
	}
	var l loaded
	var failed, took, p50, p99 int
	_, line, _ := bytes.Cut(out, []byte("loaded "))
	if _, err := fmt.Sscan(string(line), &l.requests, &l.refused, &failed, &took, &p50, &p99); err != nil {
		return l, fmt.Errorf("read what wrk printed: %w\n%s", err, out)
	}
	if failed > 0 || l.requests == 0 {
		return l, fmt.Errorf("%d of %d requests failed\n%s", failed, l.requests, out)
	}
	l.generate = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	l.took, l.p50, l.p99 = microseconds(took), microseconds(p50), microseconds(p99)
	return l, nil
}

func microseconds(n int) time.Duration { return time.Duration(n) * time.Microsecond }

// runHere makes the load without wrk. It takes more of the machine's time than wrk does.
func (c *closedLoop) runHere(ctx context.Context, address string, list *keyList, start int) (loaded, error) {
	ctx, cancel := context.WithTimeout(ctx, c.span)
	defer cancel()
	var next atomic.Int64
	next.Store(int64(start))
	began := time.Now()
	times, refused, err := eachCaller(ctx, address, c.connections, func(call func([]byte) error) error {
		for ctx.Err() == nil {
			if err := call(list.request(int(next.Add(1)))); err != nil {
				return err
			}
		}
		return nil
	})
	l := loaded{requests: len(times), refused: refused, took: time.Since(began)}
	if err != nil || l.requests == 0 {
		return l, errors.Join(err, ctx.Err())
	}
	l.p50, l.p99 = percentile(times, 0.5), percentile(times, 0.99)
	return l, nil
}

// warm makes a request with every key of a list, so that the gateway has looked them all up. On a machine that is busy with
// other work a look-up may take too long, so it goes over the list again until all are let through.
func (c *closedLoop) warm(ctx context.Context, address string, list *keyList) error {
	refused := 0
	for range 5 {
		var next atomic.Int64
		var err error
		_, refused, err = eachCaller(ctx, address, c.connections, func(call func([]byte) error) error {
			for n := int(next.Add(1)) - 1; n < len(list.keys) && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if err := call(list.request(n)); err != nil {
					return err
				}
			}
			return nil
		})
		if err := errors.Join(err, ctx.Err()); err != nil || refused == 0 {
			return err
		}
	}
	return fmt.Errorf("%d of %d keys were refused again and again", refused, len(list.keys))
}

// eachCaller runs work on as many connections at once and returns how long each call took, in ascending order.
func eachCaller(ctx context.Context, address string, connections int, work func(call func([]byte) error) error) (
	times []time.Duration, refused int, err error,
) {
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			var own []time.Duration
			c, err := dial(ctx, address)
			if err == nil {
				defer c.close()
				err = work(func(request []byte) error {
					began := time.Now()
					err := c.call(request)
					own = append(own, time.Since(began))
					return err
				})
			}
			mu.Lock()
			defer mu.Unlock()
			times, errs = append(times, own...), append(errs, err)
			if c != nil {
				refused += c.refused
			}
		})
	}
	all.Wait()
	slices.Sort(times)
	return times, refused, errors.Join(errs...)
}

// percentile is the time that the given share of calls did not exceed; times are in ascending order.
func percentile(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	return times[min(int(share*float64(len(times))), len(times)-1)]
}
