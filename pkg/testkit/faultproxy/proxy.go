// Package faultproxy breaks TCP connections between a client and a server, in tests. It knows bytes only, of any protocol.
package faultproxy

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/testkit/embedded"
)

// Proxy forwards connections to a server until a fault, and again after Heal. It is safe for concurrent use.
type Proxy struct {
	// Address is its host:port on 127.0.0.1, which stays the same, Port the port.
	Address string
	Port    int

	tb   testing.TB
	work sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while it refuses
	conns    map[*conn]bool
	faults   faults
	// changed is closed when the faults change.
	changed          chan struct{}
	target, diverted string
	diversions       int
	rewrite          func([]byte) []byte
	losesReplyTo     func(request []byte) bool
	passed, shut     int
	lost             int
}

// faults are what happens to connections.
type faults struct {
	shut           bool
	toServer, back action
	delay          time.Duration // of bytes to the client
}

// action is what happens to bytes in one direction.
type action int

const (
	forward action = iota
	hold           // until the action changes
	discard
	reset // the connection, in place of the bytes
)

// Start forwards to a host:port, or to a Unix socket's path, until the test ends.
func Start(tb testing.TB, target string) *Proxy {
	tb.Helper()
	port, err := embedded.FreePort("")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{
		Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Port: port, tb: tb, target: target,
		conns: map[*conn]bool{}, changed: make(chan struct{}),
	}
	p.listen()
	tb.Cleanup(func() {
		p.Refuse()
		p.work.Wait()
	})
	return p
}

// Silent takes connections and never answers, until the test ends.
func Silent(tb testing.TB) *Proxy {
	tb.Helper()
	return Start(tb, "")
}

// Refuse closes all connections, and has new ones refused as where nobody listens.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.closeAll()
}

// Shut closes all connections, and each new one at once, as a dying server does.
func (p *Proxy) Shut() { p.set(func(f *faults) { f.shut = true }, true) }

// Cut closes all connections, once.
func (p *Proxy) Cut() { p.set(func(*faults) {}, true) }

// Reset closes every connection in place of the next request, which does not arrive.
func (p *Proxy) Reset() { p.set(func(f *faults) { f.toServer = reset }, false) }

// ResetResponses closes every connection in place of the next response to a request, which arrives.
func (p *Proxy) ResetResponses() { p.set(func(f *faults) { f.back = reset }, false) }

// DropResponses loses every response to requests, which arrive.
func (p *Proxy) DropResponses() { p.set(func(f *faults) { f.back = discard }, false) }

// DelayResponses delays every response.
func (p *Proxy) DelayResponses(by time.Duration) { p.set(func(f *faults) { f.delay = by }, false) }

// BlackHole forwards nothing until Heal, and then all that was sent meanwhile, as TCP would send it again.
func (p *Proxy) BlackHole() { p.set(func(f *faults) { f.toServer, f.back = hold, hold }, false) }

// HalfOpen makes all connections silent for good, with both ends left open, as after a power cut at the other end or at a firewall
// that forgets them. New connections work.
func (p *Proxy) HalfOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.silent = true
	}
}

// Heal ends all faults. It closes the connections that lost bytes, which cannot go on.
func (p *Proxy) Heal() {
	p.tb.Helper()
	p.set(func(f *faults) { *f = faults{} }, false)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if c.lost || c.silent {
			c.close()
		}
	}
	if p.listener == nil {
		p.listen()
	}
}

// SetTarget puts the proxy before another server, and closes all connections.
func (p *Proxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	p.closeAll()
}

// Divert leads the next n connections to another server, as an address does whose servers change.
func (p *Proxy) Divert(target string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.diverted, p.diversions = target, n
}

// Rewrite changes the first bytes of every new connection on their way to the server.
func (p *Proxy) Rewrite(first func([]byte) []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rewrite = first
}

// LoseReply loses the reply to the next request that matches, which arrives, and closes its connection in place of it.
func (p *Proxy) LoseReply(matches func(request []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losesReplyTo = matches
}

// Lost is how many replies LoseReply has lost.
func (p *Proxy) Lost() int { return p.count(&p.lost) }

// Passed is how many connections were led to a server.
func (p *Proxy) Passed() int { return p.count(&p.passed) }

// Refused is how many connections came while it was shut.
func (p *Proxy) Refused() int { return p.count(&p.shut) }

func (p *Proxy) count(of *int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *of
}

func (p *Proxy) set(change func(*faults), closes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.faults)
	close(p.changed)
	p.changed = make(chan struct{})
	if closes {
		p.closeAll()
	}
}

func (p *Proxy) closeAll() {
	for c := range p.conns {
		c.close()
	}
}

// listen is called with the lock, or before anything else uses p.
func (p *Proxy) listen() {
	p.tb.Helper()
	listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(p.tb.Context()), "tcp", p.Address)
	if err != nil {
		p.tb.Fatal(err)
	}
	p.listener = listener
	p.work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.serve(client, listener) })
		}
	})
}

// serve carries a client's connection until one of its ends closes it.
func (p *Proxy) serve(client net.Conn, listener net.Listener) {
	c := &conn{proxy: p, client: client, closed: make(chan struct{})}
	defer c.close()
	target, open := p.register(c, listener)
	if !open {
		return
	}
	defer p.unregister(c)
	if target == "" {
		<-c.closed
		return
	}
	network := "tcp"
	if strings.HasPrefix(target, "/") {
		network = "unix"
	}
	server, err := new(net.Dialer).DialContext(context.Background(), network, target)
	if err != nil || !c.setServer(server) {
		return
	}
	var request sync.WaitGroup
	request.Go(func() { c.carryRequests() })
	c.carryResponses()
	request.Wait()
}

// register says where a new connection leads.
func (p *Proxy) register(c *conn, listener net.Listener) (target string, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults.shut || p.listener != listener {
		p.shut++ // a server for which a connection is dear does not see it
		return "", false
	}
	p.conns[c] = true
	p.passed++
	if p.diversions > 0 {
		p.diversions--
		return p.diverted, true
	}
	return p.target, true
}

func (p *Proxy) unregister(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
