package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// openLoop sends requests at a constant rate, whether or not earlier ones have been answered, and counts each answer's time
// from when its request was due, not from when it could be sent. A server that stalls is charged for everybody who would
// have waited.
type openLoop struct {
	connections int
	rate        float64 // a second
	span        time.Duration
}

// steady is what a span of constant load came to. Late is how long after it was due a request was sent, which is part of the
// times above it.
type steady struct {
	Rate    float64
	P50     time.Duration
	P99     time.Duration
	P999    time.Duration
	LateP99 time.Duration
}

// job is one request and when it is due.
type job struct {
	n   int
	due time.Time
}

// tally is what one connection saw: the time of each answer, and how late each request went out.
type tally struct {
	times, late []time.Duration
	refused     int
	refusal     string // one of them
	err         error
}

// run sends to address; request makes the n-th request.
func (o openLoop) run(ctx context.Context, address string, request func(n int) []byte) (steady, error) {
	total := int(o.rate * o.span.Seconds())
	if total == 0 {
		return steady{}, errors.New("a rate without requests")
	}
	callers := make([]*caller, o.connections)
	for n := range callers {
		c, err := dial(ctx, address)
		if err != nil {
			return steady{}, err
		}
		defer c.close()
		callers[n] = c
	}
	jobs := make(chan job, total) // the clock never waits for the workers
	tallies := make([]tally, len(callers))
	var workers sync.WaitGroup
	for n, c := range callers {
		workers.Go(func() { tallies[n] = c.work(jobs, request) })
	}
	began := time.Now()
	o.pace(ctx, began, jobs)
	workers.Wait()
	took := time.Since(began)

	var all tally
	for _, t := range tallies {
		all.times, all.late = append(all.times, t.times...), append(all.late, t.late...)
		all.refused += t.refused
		if t.refusal != "" {
			all.refusal = t.refusal
		}
		all.err = errors.Join(all.err, t.err)
	}
	if float64(all.refused) > fewFailures*float64(total) {
		all.err = errors.Join(all.err, fmt.Errorf("%d of %d answers were not 2xx, such as %s", all.refused, total, all.refusal))
	}
	if err := errors.Join(all.err, ctx.Err()); err != nil {
		return steady{}, err
	}
	slices.Sort(all.times)
	slices.Sort(all.late)
	return steady{
		Rate: float64(len(all.times)) / took.Seconds(),
		P50:  percentile(all.times, 0.5), P99: percentile(all.times, 0.99), P999: percentile(all.times, 0.999),
		LateP99: percentile(all.late, 0.99),
	}, nil
}

// pace hands every job out when it is due, fills what jobs has room for, and closes it.
func (o openLoop) pace(ctx context.Context, began time.Time, jobs chan<- job) {
	defer close(jobs)
	for n := range cap(jobs) {
		due := began.Add(time.Duration(float64(n) / o.rate * float64(time.Second)))
		for wait := time.Until(due); wait > 0; wait = time.Until(due) {
			pause(wait)
		}
		if ctx.Err() != nil {
			return
		}
		jobs <- job{n, due}
	}
}

// work carries jobs out until there are no more, or one fails.
func (c *caller) work(jobs <-chan job, request func(n int) []byte) (t tally) {
	for j := range jobs {
		text := request(j.n)
		t.late = append(t.late, time.Since(j.due))
		if t.err = c.call(text); t.err != nil {
			return t
		}
		t.times = append(t.times, time.Since(j.due))
	}
	t.refused, t.refusal = c.refused, c.refusal
	return t
}

// caller is one connection that sends prepared requests and reads the answers.
type caller struct {
	conn    net.Conn
	in      *bufio.Reader
	answer  fasthttp.Response
	refused int
	refusal string // the first of them
}

// longestRun is when a caller gives up in any case.
const longestRun = 10 * time.Minute

func dial(ctx context.Context, address string) (*caller, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &caller{conn: conn, in: bufio.NewReader(conn)}, conn.SetDeadline(time.Now().Add(longestRun))
}

func (c *caller) call(request []byte) error {
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	if err := c.answer.Read(c.in); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	if status := c.answer.StatusCode(); status < 200 || status > 299 {
		c.refused++
		if c.refusal == "" {
			c.refusal = fmt.Sprintf("%d %s", status, c.answer.Body())
		}
	}
	return nil
}

func (c *caller) close() { _ = c.conn.Close() }
