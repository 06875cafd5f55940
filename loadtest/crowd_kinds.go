package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

const (
	// clientAddresses is the number of client addresses of a crowd.
	clientAddresses = 16
	// floodConns is the number of connections of a flood.
	floodConns = 64
	// slowInterval is the time between two bytes of a slow client.
	slowInterval = 200 * time.Millisecond
)

// crowdKind is one kind of crowd, whose members all repeat the same behavior.
type crowdKind struct {
	name string
	// members is the number of concurrent connections, and rate the requests or new connections a second of all of them.
	members, rate int
	// act is the behavior on one connection of the n-th member, until ctx ends or the gateway closes it.
	act   func(ctx context.Context, n int, m *member)
	turns []crowdTurn

	address           string
	requests, refused atomic.Int64
}

func crowdKinds(f crowdFlags, keys []string) []*crowdKind {
	withKey := func(text string, n int) string { return text + "X-Api-Key: " + keys[n%len(keys)] + "\r\n\r\n" }
	malformed := "X-Api-Key: sk_test_" + strings.Repeat("a", 63) + "\r\n" // one character too short
	return []*crowdKind{
		{name: fmt.Sprintf("%d idle connections", f.idle), members: f.idle, act: func(_ context.Context, _ int, m *member) {
			m.keepOpen("GET /health HTTP/1.1\r\nHost: loadtest\r\n\r\n", "")
		}},
		{name: fmt.Sprintf("%d silent connections", f.idle), members: f.idle, act: func(_ context.Context, _ int, m *member) {
			m.keepOpen("", "")
		}},
		{name: fmt.Sprintf("%d slow with headers", f.slow), members: f.slow, act: func(_ context.Context, _ int, m *member) {
			m.keepOpen("GET /v2/tokens HTTP/1.1\r\nHost: loadtest\r\nX-Slow: ", "a")
		}},
		{name: fmt.Sprintf("%d slow with bodies", f.slow), members: f.slow, act: func(_ context.Context, n int, m *member) {
			m.keepOpen(withKey("POST /v2/transfers HTTP/1.1\r\nHost: loadtest\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n", n), "a")
		}},
		{name: fmt.Sprintf("%d slow readers", f.slow), members: f.slow, act: func(ctx context.Context, n int, m *member) {
			m.read(ctx, withKey("GET /v2/transfers HTTP/1.1\r\nHost: loadtest\r\n", n))
		}},
		{name: fmt.Sprintf("%d malformed keys/s", f.flood), members: floodConns, rate: f.flood, act: func(ctx context.Context, n int, m *member) {
			m.flood(ctx, n, func() string { return malformed })
		}},
		// Each request waits for the next poll of the key change feed, so there are fewer than rate.
		{name: fmt.Sprintf("%d clients with unknown keys", floodConns), members: floodConns, rate: f.flood, act: func(ctx context.Context, n int, m *member) {
			m.flood(ctx, n, func() string {
				return fmt.Sprintf("X-Forwarded-For: 10.%d.%d.%d\r\nX-Api-Key: %s\r\n", rand.IntN(256), rand.IntN(256), rand.IntN(256),
					apikey.New(network.Test).Reveal())
			})
		}},
		{name: fmt.Sprintf("%d connections opened and closed/s", f.storm), members: floodConns, rate: f.storm, act: openAndClose},
	}
}

// start returns when every member has sent its first request. stop ends the crowd and returns how many requests it has sent, and
// how many of them got no 2xx response.
func (k *crowdKind) start(ctx context.Context, address string) (stop func() (requests, refused int64)) {
	k.address = address
	k.requests.Store(0)
	k.refused.Store(0)
	ctx, cancel := context.WithCancel(ctx)
	var starting, all sync.WaitGroup
	starting.Add(k.members)
	for n := range k.members {
		all.Go(func() {
			markStarted := sync.OnceFunc(starting.Done)
			defer markStarted()
			for ctx.Err() == nil {
				k.connect(ctx, n, markStarted)
			}
		})
		if n%100 == 99 {
			pause(25 * time.Millisecond) // so that the listen backlog does not overflow
		}
	}
	starting.Wait()
	return func() (int64, int64) {
		requests, refused := k.requests.Load(), k.refused.Load()
		cancel()
		all.Wait()
		return requests, refused
	}
}

// connect opens a connection, calls act and closes it.
func (k *crowdKind) connect(ctx context.Context, n int, markStarted func()) {
	m := k.open(ctx, n)
	if m == nil {
		markStarted()
		sleep(ctx, time.Second)
		return
	}
	defer m.Close()
	defer context.AfterFunc(ctx, func() { _ = m.Close() })()
	m.markStarted = markStarted
	k.act(ctx, n, m)
}

// member is one connection of a crowd.
type member struct {
	net.Conn
	kind        *crowdKind
	in          *bufio.Reader
	markStarted func()
}

// open connects from one of the crowd's addresses, and returns nil if that fails.
func (k *crowdKind) open(ctx context.Context, n int) *member {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+n%clientAddresses))}, Timeout: 10 * time.Second} //nolint:gosec // at most clientAddresses
	conn, err := dialer.DialContext(ctx, "tcp", k.address)
	if err != nil {
		k.refused.Add(1)
		return nil
	}
	return &member{Conn: conn, kind: k, in: bufio.NewReaderSize(conn, 512)}
}

// keepOpen sends first, and then slowByte, if not empty, every slowInterval, until the gateway closes the connection.
func (m *member) keepOpen(first, slowByte string) {
	m.kind.requests.Add(1)
	_, err := io.WriteString(m, first)
	m.markStarted()
	served := false
	for err == nil {
		if slowByte != "" {
			_ = m.SetReadDeadline(time.Now().Add(slowInterval)) // a response ends the wait for the next byte
		}
		if _, err = m.in.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
			_, err = io.WriteString(m, slowByte)
		} else if err == nil {
			if served = m.readSuccess(); !served {
				break
			}
		}
	}
	if !served {
		m.kind.refused.Add(1)
	}
}

// readSuccess reads a response without a body and reports whether it is 2xx.
func (m *member) readSuccess() bool {
	response, err := http.ReadResponse(m.in, nil)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode <= 299
}

// read requests a long list and reads it byte by byte. After a rejection it waits for Retry-After.
func (m *member) read(ctx context.Context, request string) {
	_ = m.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	for ctx.Err() == nil {
		m.kind.requests.Add(1)
		_, err := io.WriteString(m, request)
		if err != nil {
			return
		}
		response, err := http.ReadResponse(m.in, nil)
		if err != nil || response.StatusCode != http.StatusOK {
			m.kind.refused.Add(1)
		}
		if err != nil {
			return
		}
		m.markStarted() // the cost of the list to core is not part of the measurement
		if response.StatusCode == http.StatusOK {
			for err == nil {
				_, err = m.in.ReadByte()
				sleep(ctx, slowInterval)
			}
			return
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		// The random fraction keeps the members from retrying at the same time.
		sleep(ctx, time.Duration((float64(max(1, seconds))+rand.Float64())*float64(time.Second)))
	}
}

// flood sends requests at its share of the rate, or as fast as the responses if that is slower.
func (m *member) flood(ctx context.Context, n int, headers func() string) {
	c := &httpConn{conn: m.Conn, in: m.in}
	m.kind.pace(ctx, n, func() bool {
		m.kind.requests.Add(1)
		err := c.do([]byte("GET /v2/tokens HTTP/1.1\r\nHost: loadtest\r\n" + headers() + "\r\n"))
		if err != nil || c.response.StatusCode() > 299 {
			m.kind.refused.Add(1)
		}
		m.markStarted()
		return err == nil
	})
}

// openAndClose opens connections and closes them, every second one by a reset.
func openAndClose(ctx context.Context, n int, m *member) {
	m.markStarted()
	reset := false
	m.kind.pace(ctx, n, func() bool {
		m.kind.requests.Add(1)
		one := m.kind.open(ctx, rand.IntN(clientAddresses))
		if one == nil {
			return true
		}
		if reset = !reset; reset {
			_ = one.Conn.(*net.TCPConn).SetLinger(0)
		}
		_ = one.Close()
		return true
	})
}

// pace calls act at the n-th member's share of the rate until ctx ends or act returns false.
func (k *crowdKind) pace(ctx context.Context, n int, act func() bool) {
	interval := time.Duration(k.members) * time.Second / time.Duration(k.rate)
	next := time.Now().Add(interval * time.Duration(n) / time.Duration(k.members))
	for ctx.Err() == nil {
		if wait := time.Until(next); wait > 0 {
			sleep(ctx, wait)
		} else if wait < -time.Second {
			next = time.Now() // missed calls are skipped
		}
		if ctx.Err() == nil && !act() {
			return
		}
		next = next.Add(interval)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
