package edge

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// lingerTime and lingerBytes bound what is still read of a request after its refusal.
	lingerTime  = time.Second
	lingerBytes = 4 << 20
)

// lingerer lets a client read an answer that came before all of its request was read. To close a connection with
// unread bytes on it, or before they arrive, resets it, and what the client has not read by then is lost with it (RFC
// 9112 section 9.6).
type lingerer struct {
	net.Listener
	// conns are those open, by remote address: fasthttp shows handlers a wrapper of its own.
	conns sync.Map
}

func (l *lingerer) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := accepted.(*net.TCPConn)
	if !ok {
		return accepted, nil
	}
	c := &lingeringConn{TCPConn: tcp, from: l}
	l.conns.Store(tcp.RemoteAddr().String(), c)
	return c, nil
}

// linger says that the connection of this request closes with some of it unread.
func (l *lingerer) linger(ctx *fasthttp.RequestCtx) {
	if c, open := l.conns.Load(ctx.RemoteAddr().String()); open {
		c.(*lingeringConn).unread.Store(true)
	}
}

type lingeringConn struct {
	*net.TCPConn
	from   *lingerer
	unread atomic.Bool
}

// Close sends the end of the answer first and waits, within bounds, until the client has sent all it had to say.
func (c *lingeringConn) Close() error {
	c.from.conns.CompareAndDelete(c.RemoteAddr().String(), c)
	if c.unread.CompareAndSwap(true, false) && c.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c.TCPConn, lingerBytes)) // an error ends the wait as well
	}
	return c.TCPConn.Close()
}
