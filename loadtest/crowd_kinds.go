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
	"time"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// idle asks once and keeps the connection.
func (t *throng) idle(ctx context.Context, n int) {
	m := t.open(ctx, n)
	if m == nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = m.Close() })()
	_, _ = io.WriteString(m, "GET /health HTTP/1.1\r\nHost: loadtest\r\n\r\n") // the answer tells
	if t.answer(m) != http.StatusNoContent {
		t.ended(ctx, m)
		rest(ctx, time.Second)
		return
	}
	t.here.Add(1)
	_, _ = m.in.ReadByte() // until it is closed
	t.ended(ctx, m)
}

// silent opens a connection and says nothing.
func (t *throng) silent(ctx context.Context, n int) {
	m := t.open(ctx, n)
	if m == nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = m.Close() })()
	t.here.Add(1)
	t.answer(m)
	t.ended(ctx, m)
}

// drip is the time between two bytes of a slow sender.
const drip = 200 * time.Millisecond

func (t *throng) headers(ctx context.Context, n int) {
	t.trickle(ctx, n, "GET /v2/tokens HTTP/1.1\r\nHost: loadtest\r\nX-Slow: ")
}

func (t *throng) bodies(ctx context.Context, n int) {
	t.trickle(ctx, n, "POST /v2/transfers HTTP/1.1\r\nHost: loadtest\r\nContent-Type: application/json\r\nContent-Length: 10000\r\nX-Api-Key: "+
		t.Keys[n%len(t.Keys)]+"\r\n\r\n")
}

// trickle begins a request and never ends it.
func (t *throng) trickle(ctx context.Context, n int, start string) {
	m := t.open(ctx, n)
	if m == nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = m.Close() })()
	t.here.Add(1)
	_, err := io.WriteString(m, start)
	for err == nil {
		_ = m.SetReadDeadline(time.Now().Add(drip)) // the answer, if there is one, comes instead of the next byte
		if _, err = m.in.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
			_, err = io.WriteString(m, "a")
		} else if err == nil {
			_ = m.SetReadDeadline(time.Time{})
			t.answer(m)
			break
		}
	}
	t.ended(ctx, m)
}

// readers ask for a long list and read it byte by byte.
func (t *throng) readers(ctx context.Context, n int) {
	m := t.open(ctx, n)
	if m == nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = m.Close() })()
	gather := sync.OnceFunc(func() { t.here.Add(1) })
	_ = m.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	request := "GET /v2/transfers HTTP/1.1\r\nHost: loadtest\r\nX-Api-Key: " + t.Keys[n%len(t.Keys)] + "\r\n\r\n"
	for ctx.Err() == nil {
		if _, err := io.WriteString(m, request); err != nil {
			break
		}
		response, err := http.ReadResponse(m.in, nil)
		if err != nil {
			break
		}
		t.note(func(o *thronged) { o.Statuses[response.StatusCode]++ })
		gather() // so that the lists' own cost to core is not taken for that of their slow readers
		if response.StatusCode != http.StatusOK {
			_, _ = io.Copy(io.Discard, response.Body)
			seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
			// Each has a clock of its own: without the fraction those who were refused together would come again together.
			rest(ctx, time.Duration((float64(max(1, seconds))+rand.Float64())*float64(time.Second)))
			continue
		}
		for m.began = time.Now(); err == nil; rest(ctx, drip) {
			_, err = m.in.ReadByte()
		}
		break
	}
	t.ended(ctx, m)
}

const wellFormed = 64

// malformed keys are a character short.
func (t *throng) malformed(ctx context.Context, n int) {
	key := "sk_test_" + strings.Repeat("a", wellFormed-1)
	t.flood(ctx, n, func() string { return "X-Api-Key: " + key + "\r\n" })
}

// unknown keys come from one address, behind a proxy that is trusted.
func (t *throng) unknown(ctx context.Context, n int) {
	address := fmt.Sprintf("203.0.113.%d", 1+os.Getpid()%250)
	t.flood(ctx, n, func() string {
		return "X-Forwarded-For: " + address + "\r\nX-Api-Key: " + apikey.New(network.Test).Reveal() + "\r\n"
	})
}

// scattered keys come from an address of their own each.
func (t *throng) scattered(ctx context.Context, n int) {
	t.flood(ctx, n, func() string {
		return fmt.Sprintf("X-Forwarded-For: 10.%d.%d.%d\r\nX-Api-Key: %s\r\n", rand.IntN(256), rand.IntN(256), rand.IntN(256),
			apikey.New(network.Test).Reveal())
	})
}

// flood makes requests at this connection's share of the rate, or as fast as they are answered where that is slower.
func (t *throng) flood(ctx context.Context, n int, headers func() string) {
	m := t.open(ctx, n)
	if m == nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = m.Close() })()
	t.here.Add(1)
	c := &caller{conn: m.Conn, in: bufio.NewReader(m.Conn)}
	own := map[int]int{}
	t.pace(ctx, n, func() bool {
		if c.call([]byte("GET /v2/tokens HTTP/1.1\r\nHost: loadtest\r\n"+headers()+"\r\n")) != nil {
			return false
		}
		own[c.answer.StatusCode()]++
		return true
	})
	t.note(func(o *thronged) {
		for status, count := range own {
			o.Statuses[status] += count
		}
	})
	t.ended(ctx, m)
}

// pace acts at this member's share of the rate until ctx ends or act fails.
func (t *throng) pace(ctx context.Context, n int, act func() bool) {
	apart := time.Duration(t.Count) * time.Second / time.Duration(t.Rate)
	next := time.Now().Add(apart * time.Duration(n) / time.Duration(t.Count))
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

// storm opens connections and closes them, by a reset every other time.
func (t *throng) storm(ctx context.Context, n int) {
	t.here.Add(1)
	reset := false
	t.pace(ctx, n, func() bool {
		m := t.open(ctx, rand.IntN(homes))
		if m == nil {
			return true
		}
		if reset = !reset; reset {
			_ = m.Conn.(*net.TCPConn).SetLinger(0)
		}
		_ = m.Close()
		return true
	})
}
