package edge

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/gateway/deadline"
	"intents.internal/gateway/socket"
)

const (
	// lobbySize bounds the connections that are not let in and still have their refusal read to them.
	lobbySize = 128
	// leastPause and mostPause are how long nobody is let in where the system has no room for another connection.
	leastPause, mostPause = 5 * time.Millisecond, time.Second
)

// door lets connections in up to their bounds, and tells the others why not. fasthttp has such bounds too, but answers in
// plain text, does not count IPv6 addresses, and stops serving for good where the process has no file descriptor left.
type door struct {
	options ServerOptions
	log     *slog.Logger

	// conns counts the connections open by where they come from.
	conns *quota[netip.Addr]

	lobby    chan struct{}
	refusals sync.WaitGroup

	full, crowded          turnedAway
	exhausted, slowReaders prometheus.Counter
}

func newDoor(o ServerOptions, log *slog.Logger, registry prometheus.Registerer) *door {
	most, each := affordable(o.MaxConns, o.MaxConnsPerIP, openFileLimit())
	if most < o.MaxConns {
		log.Warn("fewer connections than configured: the process may not open enough files",
			"max_conns", most, "max_conns_per_ip", each, "configured", o.MaxConns)
	}
	d := &door{
		options: o,
		log:     log,
		conns:   newQuota[netip.Addr](most, each),
		lobby:   make(chan struct{}, lobbySize),
	}
	factory := promauto.With(registry)
	gauge := func(name, help string, read func() int) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(read()) })
	}
	gauge("intents_gateway_connections_open", "Client connections open. Near intents_gateway_connections_limit, new ones are about to be refused.", d.conns.count)
	gauge("intents_gateway_connections_limit", "Client connections that may be open at once: GATEWAY_MAX_CONNS, or as many as the files that the "+
		"process may open allow. A lower value than configured means that these are too few.", d.conns.limit)
	refused := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_connections_refused_total",
		Help: "Client connections answered 503 at once because too many were open in all (full) or from one address (address), and " +
			"times that the system had no room for another, which then waits (exhausted). A rise means an attack or bounds that are too low.",
	}, []string{"reason"})
	d.full = newTurnedAway("Too many connections are open. Try again shortly.", refused.WithLabelValues("full"))
	d.crowded = newTurnedAway("Too many connections are open from your address. Use fewer, and use them again.", refused.WithLabelValues("address"))
	d.exhausted = refused.WithLabelValues("exhausted")
	d.slowReaders = factory.NewCounter(prometheus.CounterOpts{
		Name: "intents_gateway_slow_readers_total",
		Help: "Client connections closed because an answer was not read in time. A rise means an attack or clients with bad networks.",
	})
	return d
}

// affordable lowers the bounds, in proportion, to three quarters of the files that the process may open: the rest is for
// connections to core and Redis, without which nobody can be served.
func affordable(conns, perAddress, files int) (most, each int) {
	most = max(1, files-files/4)
	if conns <= most {
		return conns, perAddress
	}
	if perAddress > 0 {
		perAddress = max(1, int(float64(perAddress)*float64(most)/float64(conns)))
	}
	return most, perAddress
}

// entrance is a listener with a door.
type entrance struct {
	net.Listener
	door *door
}

// Accept waits for the next connection that may come in.
func (e *entrance) Accept() (net.Conn, error) {
	d, pause := e.door, leastPause
	for {
		accepted, err := e.Listener.Accept()
		if isExhausted(err) {
			d.exhausted.Inc()
			time.Sleep(pause)
			pause = min(2*pause, mostPause)
			continue
		}
		if err != nil {
			return nil, err
		}
		pause = leastPause
		tcp, ok := accepted.(*net.TCPConn)
		if !ok {
			return accepted, nil
		}
		v := &visitor{Conn: deadline.New(tcp), tcp: tcp, door: d, client: prefixOf(tcp.RemoteAddr())}
		switch d.conns.acquire(v.client) {
		case inAll:
			d.turnAway(v, &d.full)
		case ofOwner:
			d.turnAway(v, &d.crowded)
		case none:
			v.inside.Store(true)
			_ = tcp.SetWriteBuffer(sendBuffer) // a connection that is gone tells so when it is read
			runtime.Gosched()                  // thousands that come at once must not go before those that are inside
			return v, nil
		}
	}
}

// isExhausted reports whether the process or the system lacks room for another connection, which may pass.
func isExhausted(err error) bool {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// prefixOf is what shares one bound of connections.
func prefixOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return socket.ClientPrefix(tcp.AddrPort().Addr())
}

// turnAway answers a connection that may not come in and closes it. The client may be sending its request already, so it
// is waited for as after any early answer, but only for as many as the lobby holds: a crowd is closed on at once.
func (d *door) turnAway(v *visitor, why *turnedAway) {
	why.count.Inc()
	select {
	case d.lobby <- struct{}{}:
		d.refusals.Go(func() {
			defer func() { <-d.lobby }()
			v.unread.Store(true)
			v.dismiss(why)
		})
	default:
		v.dismiss(why)
	}
}

// settle waits until everyone in the lobby is gone, which takes no longer than lingerTime.
func (d *door) settle() { d.refusals.Wait() }
