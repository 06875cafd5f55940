package faults_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/testkit/embedded"
)

// fault is what a proxy does to the connections through it.
type fault int

const (
	none fault = iota
	// refused: nothing listens, and connections that were open are reset.
	refused
	// reset: every connection is taken and reset at once, as by a balancer with nobody behind it.
	reset
	// blackHole: connections are taken, and no byte gets through in either direction until it ends; then all do, as TCP
	// would send them again.
	blackHole
	// unanswered: as blackHole, and new connections are not even answered, as by a host that is gone.
	unanswered
	// slow: replies come later by proxy.latency.
	slow
	// repliesDropped: requests arrive and replies vanish.
	repliesDropped
	// cutAtReply: requests arrive, and the connection is reset in place of the reply.
	cutAtReply
)

// proxy stands between a client and a server, and breaks what is between them on demand.
//
// It is ours because a fault proxy that passes bytes on over channels, as others do, drops what a black hole would only
// hold up, and counts no connections.
type proxy struct {
	address string // where it listens, host:port
	latency time.Duration

	pumps sync.WaitGroup

	mu       sync.Mutex
	listener *net.TCPListener
	target   string
	fault    fault
	marker   []byte
	changed  chan struct{} // closed at each change of fault
	open     map[*link]struct{}
	accepted int
	requests int // bytes from clients
	plugs    []net.Conn
	closed   bool
}

// startProxy forwards to the target until the test ends.
func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	port, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		address: (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}).String(),
		target:  target, changed: make(chan struct{}), open: map[*link]struct{}{},
	}
	if err := p.listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// url is the address with http in front.
func (p *proxy) url() string { return "http://" + p.address }

// inflict begins a fault, which ends with heal or with another.
func (p *proxy) inflict(t *testing.T, f fault) {
	t.Helper()
	p.mu.Lock()
	p.fault = f
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	switch f {
	case refused:
		p.mu.Lock()
		_ = p.listener.Close()
		p.mu.Unlock()
		p.cut()
	case reset:
		p.cut()
	case unanswered:
		if err := p.plug(); err != nil {
			t.Fatal(err)
		}
	default:
	}
	if f == refused {
		return
	}
	if err := p.restore(f); err != nil {
		t.Fatal(err)
	}
}

// heal ends the fault. Connections that were stranded stay so.
func (p *proxy) heal(t *testing.T) {
	t.Helper()
	p.inflict(t, none)
}

// losesRepliesTo has only replies to requests with this text in them dropped, or cut off. Others, such as a greeting at the
// start of a connection, are let through.
func (p *proxy) losesRepliesTo(marker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marker = []byte(marker)
}

// slowBy makes replies come so much later.
func (p *proxy) slowBy(t *testing.T, latency time.Duration) {
	t.Helper()
	p.replyAfter(latency)
	p.inflict(t, slow)
}

// replyAfter says how much later replies come under the fault slow.
func (p *proxy) replyAfter(latency time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = latency
}

// pointTo sends new connections to another target, as a changed DNS record would; those that are open stay where they are.
func (p *proxy) pointTo(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// cut resets all open connections, once.
func (p *proxy) cut() {
	for _, l := range p.links() {
		l.reset()
	}
}

// strand makes all open connections silent for good, both ends left open, as after a power cut at the other end or at a
// firewall that forgets them; new connections work.
func (p *proxy) strand() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.open {
		l.stranded = true
	}
}

// dials is how many connections were taken so far, and connections how many are open.
func (p *proxy) dials() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

func (p *proxy) connections() int { return len(p.links()) }

// received is how many bytes clients have sent so far, passed on or not.
func (p *proxy) received() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

func (p *proxy) links() (all []*link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.open {
		all = append(all, l)
	}
	return all
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed, p.fault = true, reset
	close(p.changed)
	p.changed = make(chan struct{})
	_ = p.listener.Close()
	for _, plug := range p.plugs {
		_ = plug.Close()
	}
	p.mu.Unlock()
	p.cut()
	p.pumps.Wait()
}

// when waits for a fault of which ok is true.
func (p *proxy) when(ok func(fault) bool) (fault, time.Duration) {
	for {
		p.mu.Lock()
		f, latency, changed := p.fault, p.latency, p.changed
		p.mu.Unlock()
		if ok(f) {
			return f, latency
		}
		<-changed
	}
}
