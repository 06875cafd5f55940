package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// orders say what a throng is to do.
type orders struct {
	Kind, Address string
	// Count is how many connections it has at once, Rate how many requests or connections a second it makes where that is
	// bounded, and Keys are good ones.
	Count, Rate int
	Keys        []string
}

// throng is a crowd: each of its members does the same over and over until the process is ended.
type throng struct {
	orders

	here atomic.Int64 // members that have gathered
	mu   sync.Mutex
	saw  thronged
}

// gathered is what a throng says when all of it is there.
const gathered = "gathered"

// homes is how many addresses a throng comes from.
const homes = 16

// thronged is what a throng saw.
type thronged struct {
	Seconds float64
	// Opened and Failed count connections, those that could not be opened among the latter.
	Opened, Failed int
	// Closed counts those that the gateway closed, and Lasted is after how many seconds, the median.
	Closed int
	Lasted float64
	// Statuses counts answers.
	Statuses map[int]int

	lasted []float64
}

func (o thronged) String() string {
	words := []string{fmt.Sprintf("%d connections", o.Opened)}
	for _, status := range slices.Sorted(maps.Keys(o.Statuses)) {
		words = append(words, fmt.Sprintf("%d × %d", o.Statuses[status], status))
	}
	if o.Closed > 0 {
		words = append(words, fmt.Sprintf("%d closed on, after %.2f s", o.Closed, o.Lasted))
	}
	if o.Failed > 0 {
		words = append(words, fmt.Sprintf("%d not opened", o.Failed))
	}
	return strings.Join(words, ", ")
}

// runThrong is a scenario of its own, which crowd starts as a process. What to do is on standard input.
func runThrong(ctx context.Context, _ []string) error {
	t := &throng{saw: thronged{Statuses: map[int]int{}}}
	if err := json.NewDecoder(os.Stdin).Decode(&t.orders); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	act := map[string]func(context.Context, int){
		"idle": t.idle, "silent": t.silent, "headers": t.headers, "bodies": t.bodies, "readers": t.readers,
		"malformed": t.malformed, "unknown": t.unknown, "scattered": t.scattered, "storm": t.storm,
	}[t.Kind]
	if act == nil {
		return fmt.Errorf("there is no crowd %q", t.Kind)
	}
	began := time.Now()
	var all sync.WaitGroup
	for n := range t.Count {
		all.Go(func() {
			for ctx.Err() == nil {
				act(ctx, n)
			}
		})
		if n%100 == 99 {
			pause(25 * time.Millisecond) // so that the backlog of the system does not overflow
		}
	}
	for ctx.Err() == nil && t.here.Load() < int64(t.Count) {
		pause(10 * time.Millisecond)
	}
	fmt.Println(gathered)
	all.Wait()
	t.saw.Seconds = time.Since(began).Seconds()
	if len(t.saw.lasted) > 0 {
		t.saw.Lasted = median(t.saw.lasted)
	}
	return json.NewEncoder(os.Stdout).Encode(t.saw)
}

// member is one connection of a throng.
type member struct {
	net.Conn
	in    *bufio.Reader
	began time.Time
}

// open makes a connection from one of the throng's addresses that ends with ctx. It returns nil, after a while, where there
// is none to be had.
func (t *throng) open(ctx context.Context, n int) *member {
	home := net.IPv4(127, 0, 1, byte(1+n%homes)) //nolint:gosec // it is at most homes
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: home}, Timeout: 10 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", t.Address)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		t.note(func(o *thronged) { o.Failed++ })
		rest(ctx, time.Second)
		return nil
	}
	t.note(func(o *thronged) { o.Opened++ })
	return &member{Conn: conn, in: bufio.NewReaderSize(conn, 512), began: time.Now()}
}

func (t *throng) note(change func(*thronged)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.saw)
}

// ended notes that the gateway has closed a connection, unless it ends because the throng does.
func (t *throng) ended(ctx context.Context, m *member) {
	took := time.Since(m.began).Seconds()
	_ = m.Close()
	if ctx.Err() == nil {
		t.note(func(o *thronged) { o.Closed++; o.lasted = append(o.lasted, took) })
	}
}

// answer reads an answer, with its body, and counts it; 0 where there is none.
func (t *throng) answer(m *member) int {
	response, err := http.ReadResponse(m.in, nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0
	}
	t.note(func(o *thronged) { o.Statuses[response.StatusCode]++ })
	return response.StatusCode
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
