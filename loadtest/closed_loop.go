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

	"github.com/google/uuid"
)

// closedResult is the result of a closed loop.
type closedResult struct {
	requests int
	refused  int // responses other than 2xx
	took     time.Duration
	generate time.Duration // CPU time of wrk
	p50, p99 time.Duration
}

// closedLoop sends requests with a list's keys over a fixed number of connections, from a random position in the list. Each
// connection sends its next request after the response.
type closedLoop struct {
	wrk, script, file string // empty if wrk is not installed: then this program generates the load
	template          requestTemplate
	connections       int
	duration          time.Duration
}

const wrkScript = `-- Iterates over a file of API keys from the given position, and prints a line for this program.
local requests, n, sent, run = {}, 0, 0, nil
function init(args)
  local template = io.open(args[3], "rb"):read("*a")
  for key in io.lines(args[1]) do
    requests[#requests + 1] = template:gsub("KEY", key, 1)
  end
  n = tonumber(args[2]) % #requests
  if template:find("SEQUENCE", 1, true) then
    run = args[4]
  end
end
function request()
  n = n % #requests + 1
  if not run then
    return requests[n]
  end
  sent = sent + 1
  return (requests[n]:gsub("SEQUENCE", run .. "-" .. sent, 1))
end
function done(summary, latency)
  local e = summary.errors
  print(string.format("loaded %d %d %d %d %d %d", summary.requests, e.status, e.connect + e.read + e.write + e.timeout,
    summary.duration, latency:percentile(50), latency:percentile(99)))
end
`

// newClosedLoop is a closed loop of the template's requests. Its files are in dir and begin with name.
func newClosedLoop(dir, name string, template requestTemplate, connections int, duration time.Duration) (*closedLoop, error) {
	c := &closedLoop{template: template, connections: connections, duration: duration}
	var err error
	if c.wrk, err = exec.LookPath("wrk"); err != nil {
		return c, nil //nolint:nilerr // without wrk this program generates the load
	}
	c.script, c.file = filepath.Join(dir, name+".lua"), filepath.Join(dir, name+".request")
	return c, errors.Join(os.WriteFile(c.script, []byte(wrkScript), 0o600), os.WriteFile(c.file, []byte(template), 0o600))
}

func (c *closedLoop) String() string {
	if c.wrk == "" {
		return fmt.Sprintf("load by this program (wrk is not installed), %d connections", c.connections)
	}
	return fmt.Sprintf("load by wrk, one thread, %d connections", c.connections)
}

func (c *closedLoop) run(ctx context.Context, address string, list *keyList) (closedResult, error) {
	start := rand.IntN(len(list.keys))
	if c.wrk == "" {
		return c.runInternal(ctx, address, list, start)
	}
	command := exec.CommandContext(ctx, c.wrk, "-t1", "-c"+strconv.Itoa(c.connections),
		"-d"+strconv.Itoa(int(c.duration.Seconds()))+"s", "-s", c.script, "http://"+address, "--", list.path, strconv.Itoa(start), c.file, uuid.NewString())
	out, err := command.CombinedOutput()
	if err != nil {
		return closedResult{}, fmt.Errorf("run wrk: %w\n%s", err, out)
	}
	var l closedResult
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

// runInternal generates the load without wrk. It uses more CPU time than wrk.
func (c *closedLoop) runInternal(ctx context.Context, address string, list *keyList, start int) (closedResult, error) {
	ctx, cancel := context.WithTimeout(ctx, c.duration)
	defer cancel()
	var next atomic.Int64
	next.Store(int64(start))
	began := time.Now()
	times, refused, err := eachConn(ctx, address, c.connections, func(do func([]byte) error) error {
		for ctx.Err() == nil {
			if err := do(list.request(c.template, int(next.Add(1)))); err != nil {
				return err
			}
		}
		return nil
	})
	l := closedResult{requests: len(times), refused: refused, took: time.Since(began)}
	if err != nil || l.requests == 0 {
		return l, errors.Join(err, ctx.Err())
	}
	l.p50, l.p99 = percentile(times, 0.5), percentile(times, 0.99)
	return l, nil
}

// warm sends a request with every key of a list, so that the gateway has all their verdicts. Look-ups may time out on a busy
// machine, so it repeats the list until every key is accepted.
func (c *closedLoop) warm(ctx context.Context, address string, list *keyList) error {
	refused := 0
	for range 5 {
		var next atomic.Int64
		var err error
		_, refused, err = eachConn(ctx, address, c.connections, func(do func([]byte) error) error {
			for n := int(next.Add(1)) - 1; n < len(list.keys) && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if err := do(list.request(c.template, n)); err != nil {
					return err
				}
			}
			return nil
		})
		if err := errors.Join(err, ctx.Err()); err != nil || refused == 0 {
			return err
		}
	}
	return fmt.Errorf("%d of %d keys are still refused after 5 attempts", refused, len(list.keys))
}

// eachConn runs work on every connection concurrently and returns the response times in ascending order.
func eachConn(ctx context.Context, address string, connections int, work func(do func([]byte) error) error) (
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
					err := c.do(request)
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

// percentile returns the given quantile of times, which are in ascending order.
func percentile(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	return times[min(int(share*float64(len(times))), len(times)-1)]
}
