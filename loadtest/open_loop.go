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

// openLoop sends requests at a constant rate, whether or not there are responses to earlier ones. A response time counts from
// when the request was due, not from when it was sent, so that it includes the stalls of the server (coordinated omission).
type openLoop struct {
	connections int
	rate        float64 // a second
	duration    time.Duration
}

// constantResult is the result of a constant load. LateP99 is how long after they were due requests were sent, which is part of
// the response times.
type constantResult struct {
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

// connResult is the result of one connection: the response times, and how late each request was sent.
type connResult struct {
	times, late   []time.Duration
	refused       int
	refusedSample string // one of the refused responses
	err           error
}

// run sends to address; request makes the n-th request.
func (o openLoop) run(ctx context.Context, address string, request func(n int) []byte) (constantResult, error) {
	total := int(o.rate * o.duration.Seconds())
	if total == 0 {
		return constantResult{}, errors.New("the rate and duration are below one request")
	}
	conns := make([]*httpConn, o.connections)
	for n := range conns {
		c, err := dial(ctx, address)
		if err != nil {
			return constantResult{}, err
		}
		defer c.close()
		conns[n] = c
	}
	jobs := make(chan job, total) // so that pace does not block on the workers
	results := make([]connResult, len(conns))
	var workers sync.WaitGroup
	for n, c := range conns {
		workers.Go(func() { results[n] = c.work(jobs, request) })
	}
	began := time.Now()
	o.pace(ctx, began, jobs)
	workers.Wait()
	took := time.Since(began)

	var all connResult
	for _, t := range results {
		all.times, all.late = append(all.times, t.times...), append(all.late, t.late...)
		all.refused += t.refused
		if t.refusedSample != "" {
			all.refusedSample = t.refusedSample
		}
		all.err = errors.Join(all.err, t.err)
	}
	if float64(all.refused) > maxFailureShare*float64(total) {
		all.err = errors.Join(all.err, fmt.Errorf("%d of %d responses were not 2xx, such as %s", all.refused, total, all.refusedSample))
	}
	if err := errors.Join(all.err, ctx.Err()); err != nil {
		return constantResult{}, err
	}
	slices.Sort(all.times)
	slices.Sort(all.late)
	return constantResult{
		Rate: float64(len(all.times)) / took.Seconds(),
		P50:  percentile(all.times, 0.5), P99: percentile(all.times, 0.99), P999: percentile(all.times, 0.999),
		LateP99: percentile(all.late, 0.99),
	}, nil
}

// pace sends cap(jobs) jobs, each when it is due, and closes jobs.
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

// work sends the requests of jobs until jobs is closed or a request fails.
func (c *httpConn) work(jobs <-chan job, request func(n int) []byte) (t connResult) {
	for j := range jobs {
		text := request(j.n)
		t.late = append(t.late, time.Since(j.due))
		if t.err = c.do(text); t.err != nil {
			return t
		}
		t.times = append(t.times, time.Since(j.due))
	}
	t.refused, t.refusedSample = c.refused, c.refusedSample
	return t
}

// httpConn is a connection that sends prepared requests and reads the responses.
type httpConn struct {
	conn          net.Conn
	in            *bufio.Reader
	response      fasthttp.Response
	refused       int
	refusedSample string // the first one
}

// connTimeout bounds the use of a connection.
const connTimeout = 10 * time.Minute

func dial(ctx context.Context, address string) (*httpConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &httpConn{conn: conn, in: bufio.NewReader(conn)}, conn.SetDeadline(time.Now().Add(connTimeout))
}

func (c *httpConn) do(request []byte) error {
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	if err := c.response.Read(c.in); err != nil {
		return fmt.Errorf("read a response: %w", err)
	}
	if status := c.response.StatusCode(); status < 200 || status > 299 {
		c.refused++
		if c.refusedSample == "" {
			c.refusedSample = fmt.Sprintf("%d %s", status, c.response.Body())
		}
	}
	return nil
}

func (c *httpConn) close() { _ = c.conn.Close() }
