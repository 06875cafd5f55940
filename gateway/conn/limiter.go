package conn

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

	"intents.internal/pkg/fair"
)

const (
	// rejectQueueSize bounds the rejected connections that stay open until the client has read the response.
	rejectQueueSize = 128
	// minAcceptBackoff and maxAcceptBackoff bound the pause of Accept while the system lacks resources for another connection.
	minAcceptBackoff, maxAcceptBackoff = 5 * time.Millisecond, time.Second
)

// Options are the limits of client connections; all must be set unless said otherwise.
type Options struct {
	// MaxConns bounds the open connections, MaxConnsPerIP those of one IPv4 address or IPv6 /64 (0 for no bound).
	MaxConns, MaxConnsPerIP int
	// WriteTimeout bounds what fasthttp writes outside of a response.
	WriteTimeout time.Duration
	// StreamRate is the minimum average rate, in bytes per second, at which a client must read a response; a client that is more
	// than WriteTimeout behind it is disconnected (0 for no such bound).
	StreamRate int
}

// Limiter bounds the open connections, in total and per client, and rejects connections over the bounds. fasthttp's own
// bounds respond in plain text, do not count IPv6 addresses, and stop the server when the process has no file descriptor left.
type Limiter struct {
	options Options

	// conns counts the open connections by client prefix.
	conns *fair.Slots[netip.Addr]

	rejectQueue chan struct{}
	rejections  sync.WaitGroup

	atMax, atMaxPerIP      rejection
	exhausted, slowReaders prometheus.Counter
}

// NewLimiter creates a limiter. Its bounds are lower than the options if the process may open too few files.
func NewLimiter(o Options, log *slog.Logger, registry prometheus.Registerer) *Limiter {
	most, each := capByOpenFiles(o.MaxConns, o.MaxConnsPerIP, OpenFileLimit())
	if most < o.MaxConns {
		log.Warn("GATEWAY_MAX_CONNS lowered to three quarters of the files that the process may open, see ulimit -n",
			"max_conns", most, "max_conns_per_ip", each, "configured", o.MaxConns)
	}
	l := &Limiter{
		options:     o,
		conns:       fair.New[netip.Addr](most, fair.AtMost(each)),
		rejectQueue: make(chan struct{}, rejectQueueSize),
	}
	factory := promauto.With(registry)
	gauge := func(name, help string, read func() int) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(read()) })
	}
	gauge("intents_gateway_connections_open", "Client connections open. Near intents_gateway_connections_limit, new ones are about to be refused.", l.conns.Used)
	gauge("intents_gateway_connections_limit", "Client connections that may be open at once: GATEWAY_MAX_CONNS, or as many as the files that the "+
		"process may open allow. A lower value than configured means that these are too few.", l.conns.Max)
	refused := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "intents_gateway_connections_refused_total",
		Help: "Client connections answered 503 at once because too many were open in all (full) or from one address (address), and " +
			"times that the system had no file descriptor or memory for another, which then waits (exhausted). A rise means an attack or bounds that are too low.",
	}, []string{"reason"})
	l.atMax = newRejection("Too many connections are open. Try again shortly.", refused.WithLabelValues("full"))
	l.atMaxPerIP = newRejection("Too many connections are open from your address. Use fewer, and use them again.", refused.WithLabelValues("address"))
	l.exhausted = refused.WithLabelValues("exhausted")
	l.slowReaders = factory.NewCounter(prometheus.CounterOpts{
		Name: "intents_gateway_slow_readers_total",
		Help: "Client connections closed because a response was not read in time. A rise means an attack or clients with bad networks.",
	})
	return l
}

// capByOpenFiles reduces the bounds, in proportion, to three quarters of the process's limit of open files. The rest is for
// connections to core and Redis.
func capByOpenFiles(conns, perAddress, files int) (most, each int) {
	most = max(1, files-files/4)
	if conns <= most {
		return conns, perAddress
	}
	if perAddress > 0 {
		perAddress = max(1, int(float64(perAddress)*float64(most)/float64(conns)))
	}
	return most, perAddress
}

// Listener returns a listener whose connections are Clients within the bounds.
func (l *Limiter) Listener(listener net.Listener) net.Listener { return &limitedListener{listener, l} }

// limitedListener accepts the connections that its limiter admits.
type limitedListener struct {
	net.Listener
	limiter *Limiter
}

// Accept returns the next connection that is within the bounds.
func (e *limitedListener) Accept() (net.Conn, error) {
	l, backoff := e.limiter, minAcceptBackoff
	for {
		accepted, err := e.Listener.Accept()
		if isExhausted(err) {
			l.exhausted.Inc()
			time.Sleep(backoff)
			backoff = min(2*backoff, maxAcceptBackoff)
			continue
		}
		if err != nil {
			return nil, err
		}
		backoff = minAcceptBackoff
		tcp, ok := accepted.(*net.TCPConn)
		if !ok {
			return accepted, nil
		}
		c := &Client{DeadlineConn: NewDeadlineConn(tcp), tcp: tcp, limiter: l, address: AddressOf(tcp.RemoteAddr())}
		switch l.conns.TryAcquire(ClientPrefix(c.address)) {
		case fair.AtMax:
			l.reject(c, &l.atMax)
		case fair.OwnerAtMax:
			l.reject(c, &l.atMaxPerIP)
		case fair.Granted:
			c.counted.Store(true)
			_ = tcp.SetWriteBuffer(sendBuffer) // an error recurs at the first read
			runtime.Gosched()                  // a burst of connections must not delay those that are served
			return c, nil
		}
	}
}

// isExhausted reports whether the process or the system temporarily lacks resources for another connection.
func isExhausted(err error) bool {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// AddressOf returns an address without port and zone. An IPv4-mapped IPv6 address is the IPv4 address.
func AddressOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// reject answers a connection over the bounds and closes it. The close lingers because the client may be sending its request; if
// rejectQueueSize connections linger already, it closes at once.
func (l *Limiter) reject(c *Client, r *rejection) {
	r.count.Inc()
	select {
	case l.rejectQueue <- struct{}{}:
		l.rejections.Go(func() {
			defer func() { <-l.rejectQueue }()
			c.lingerOnClose.Store(true)
			c.reject(r)
		})
	default:
		c.reject(r)
	}
}

// WaitRejections waits for the connections in the reject queue, up to lingerTime.
func (l *Limiter) WaitRejections() { l.rejections.Wait() }
