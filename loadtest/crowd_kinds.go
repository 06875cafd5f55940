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
	// homes is how many addresses a crowd comes from.
	homes = 16
	// floodConns is how many connections a flood comes on.
	floodConns = 64
	// drip is the time between two bytes of a slow client.
	drip = 200 * time.Millisecond
)

// crowdKind is one kind of crowd: each of its members does the same over and over.
type crowdKind struct {
	name string
	// members is how many connections it has at once, and rate how many requests or connections a second all of them make.
	members, rate int
	// act is one connection of the n-th member, until ctx ends or the gateway closes it.
	act   func(ctx context.Context, n int, m *member)
	turns []crowdTurn

	address           string
	requests, refused atomic.Int64
}

func crowdKinds(f crowdFlags, keys []string) []*crowdKind {
	withKey := func(text string, n int) string { return text + "X-Api-Key: " + keys[n%len(keys)] + "\r\n\r\n" }
	malformed := "X-Api-Key: sk_test_" + strings.Repeat("a", 63) + "\r\n" // a character short
	return []*crowdKind{
		{name: fmt.Sprintf("%d idle connections", f.idle), members: f.idle, act: func(_ context.Context, _ int, m *member) {
			m.hold("GET /health HTTP/1.1\r\nHost: loadtest\r\n\r\n", "")
		}},
		{name: fmt.Sprintf("%d silent connections", f.idle), members: f.idle, act: func(_ context.Context, _ int, m *member) {
			m.hold("", "")
		}},
		{name: fmt.Sprintf("%d slow with headers", f.slow), members: f.slow, act: func(_ context.Context, _ int, m *member) {
			m.hold("GET /v2/tokens HTTP/1.1\r\nHost: loadtest\r\nX-Slow: ", "a")
		}},
		{name: fmt.Sprintf("%d slow with bodies", f.slow), members: f.slow, act: func(_ context.Context, n int, m *member) {
			m.hold(withKey("POST /v2/transfers HTTP/1.1\r\nHost: loadtest\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n", n), "a")
		}},
		{name: fmt.Sprintf("%d slow readers", f.slow), members: f.slow, act: func(ctx context.Context, n int, m *member) {
			m.read(ctx, withKey("GET /v2/transfers HTTP/1.1\r\nHost: loadtest\r\n", n))
		}},
		{name: fmt.Sprintf("%d malformed keys/s", f.flood), members: floodConns, rate: f.flood, act: func(ctx context.Context, n int, m *member) {
			m.flood(ctx, n, func() string { return malformed })
		}},
		// Each waits for the next reading of the key changes, so fewer are tried than the rate says.
		{name: fmt.Sprintf("%d clients with unknown keys", floodConns), members: floodConns, rate: f.flood, act: func(ctx context.Context, n int, m *member) {
			m.flood(ctx, n, func() string {
				return fmt.Sprintf("X-Forwarded-For: 10.%d.%d.%d\r\nX-Api-Key: %s\r\n", rand.IntN(256), rand.IntN(256), rand.IntN(256),
					apikey.New(network.Test).Reveal())
			})
		}},
		{name: fmt.Sprintf("%d connections opened and closed/s", f.storm), members: floodConns, rate: f.storm, act: storm},
	}
}

// gather returns when every member has made its first request. The crowd goes on until disperse, which counts its requests and
// those that were answered with a status beyond 2xx or not at all.
func (k *crowdKind) gather(ctx context.Context, address string) (disperse func() (requests, refused int64)) {
	k.address = address
	k.requests.Store(0)
	k.refused.Store(0)
	ctx, cancel := context.WithCancel(ctx)
	var here, all sync.WaitGroup
	here.Add(k.members)
	for n := range k.members {
		all.Go(func() {
			arrive := sync.OnceFunc(here.Done)
			defer arrive()
			for ctx.Err() == nil {
				k.visit(ctx, n, arrive)
			}
		})
		if n%100 == 99 {
			pause(25 * time.Millisecond) // so that the backlog of the system does not overflow
		}
	}
	here.Wait()
	return func() (int64, int64) {
		requests, refused := k.requests.Load(), k.refused.Load()
		cancel()
		all.Wait()
		return requests, refused
	}
}

// visit opens a connection, acts on it and closes it.
func (k *crowdKind) visit(ctx context.Context, n int, arrive func()) {
	m := k.open(ctx, n)
	if m == nil {
		arrive()
		rest(ctx, time.Second)
		return
	}
	defer m.Close()
	defer context.AfterFunc(ctx, func() { _ = m.Close() })()
	m.arrive = arrive
	k.act(ctx, n, m)
}

// member is one connection of a crowd.
type member struct {
	net.Conn
	kind   *crowdKind
	in     *bufio.Reader
	arrive func()
}

// open makes a connection from one of the crowd's addresses; nil where there is none to be had.
func (k *crowdKind) open(ctx context.Context, n int) *member {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+n%homes))}, Timeout: 10 * time.Second} //nolint:gosec // it is at most homes
	conn, err := dialer.DialContext(ctx, "tcp", k.address)
	if err != nil {
		k.refused.Add(1)
		return nil
	}
	return &member{Conn: conn, kind: k, in: bufio.NewReaderSize(conn, 512)}
}

// hold sends start, and then, where there is one, a drop over and over, and keeps the connection for as long as the gateway does.
func (m *member) hold(start, drop string) {
	m.kind.requests.Add(1)
	_, err := io.WriteString(m, start)
	m.arrive()
	served := false
	for err == nil {
		if drop != "" {
			_ = m.SetReadDeadline(time.Now().Add(drip)) // the answer, if there is one, comes instead of the next byte
		}
		if _, err = m.in.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
			_, err = io.WriteString(m, drop)
		} else if err == nil {
			if served = m.answeredWell(); !served {
				break
			}
		}
	}
	if !served {
		m.kind.refused.Add(1)
	}
}

// answeredWell reads an answer without a body.
func (m *member) answeredWell() bool {
	response, err := http.ReadResponse(m.in, nil)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode <= 299
}

// read asks for a long list and reads it byte by byte. Who is refused asks again when told to.
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
		m.arrive() // so that the lists' own cost to core is not taken for that of their slow readers
		if response.StatusCode == http.StatusOK {
			for err == nil {
				_, err = m.in.ReadByte()
				rest(ctx, drip)
			}
			return
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		// Each has a clock of its own: without the fraction those who were refused together would come again together.
		rest(ctx, time.Duration((float64(max(1, seconds))+rand.Float64())*float64(time.Second)))
	}
}

// flood makes requests at its share of the rate, or as fast as they are answered where that is slower.
func (m *member) flood(ctx context.Context, n int, headers func() string) {
	c := &caller{conn: m.Conn, in: m.in}
	m.kind.pace(ctx, n, func() bool {
		m.kind.requests.Add(1)
		err := c.call([]byte("GET /v2/tokens HTTP/1.1\r\nHost: loadtest\r\n" + headers() + "\r\n"))
		if err != nil || c.answer.StatusCode() > 299 {
			m.kind.refused.Add(1)
		}
		m.arrive()
		return err == nil
	})
}

// storm opens connections and closes them, by a reset every other time.
func storm(ctx context.Context, n int, m *member) {
	m.arrive()
	reset := false
	m.kind.pace(ctx, n, func() bool {
		m.kind.requests.Add(1)
		one := m.kind.open(ctx, rand.IntN(homes))
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

// pace acts at the n-th member's share of the rate until ctx ends or act fails.
func (k *crowdKind) pace(ctx context.Context, n int, act func() bool) {
	apart := time.Duration(k.members) * time.Second / time.Duration(k.rate)
	next := time.Now().Add(apart * time.Duration(n) / time.Duration(k.members))
	for ctx.Err() == nil {
		if wait := time.Until(next); wait > 0 {
			rest(ctx, wait)
		} else if wait < -time.Second {
			next = time.Now() // what could not be done is not made up for
		}
		if ctx.Err() == nil && !act() {
			return
		}
		next = next.Add(apart)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
