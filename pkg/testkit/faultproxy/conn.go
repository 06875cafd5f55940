package faultproxy

import (
	"net"
	"sync"
	"time"
)

// conn is a client's connection and the server's.
type conn struct {
	proxy  *Proxy
	client net.Conn
	closed chan struct{}
	once   sync.Once

	// These are protected by the proxy's lock.
	server net.Conn
	// silent connections forward nothing any more. lost is set once bytes were lost.
	silent, lost bool
	// losesReply is set once a request was sent whose reply is to be lost.
	losesReply bool
}

// setServer reports whether the connection is still open.
func (c *conn) setServer(server net.Conn) bool {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.server = server
	select {
	case <-c.closed:
		_ = server.Close()
		return false
	default:
		return true
	}
}

// close closes both ends. It is called with the proxy's lock or by the connection's own goroutine.
func (c *conn) close() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.client.Close()
		if c.server != nil {
			_ = c.server.Close()
		}
	})
}

func (c *conn) carryRequests() {
	first := true
	c.carry(c.server, c.client, func() action { return c.proxy.faults.toServer }, func(request []byte) []byte {
		p := c.proxy
		p.mu.Lock()
		defer p.mu.Unlock()
		if first && p.rewrite != nil {
			request = p.rewrite(request)
		}
		first = false
		if p.losesReplyTo != nil && p.losesReplyTo(request) {
			c.losesReply, p.losesReplyTo = true, nil
		}
		return request
	})
}

func (c *conn) carryResponses() {
	c.carry(c.client, c.server, func() action {
		if c.losesReply {
			c.proxy.lost++
			return reset
		}
		return c.proxy.faults.back
	}, func(response []byte) []byte {
		c.proxy.mu.Lock()
		delay, changed := c.proxy.faults.delay, c.proxy.changed
		c.proxy.mu.Unlock()
		if delay > 0 {
			timer := time.NewTimer(delay)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-changed:
			case <-c.closed:
			}
		}
		return response
	})
}

// carry copies bytes, as the action says, until one end closes or the connection is reset. edit sees what is about to be written.
func (c *conn) carry(to, from net.Conn, current func() action, edit func([]byte) []byte) {
	defer func() {
		c.proxy.mu.Lock()
		defer c.proxy.mu.Unlock()
		c.close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			switch c.decide(current) {
			case forward:
				if _, err := to.Write(edit(buffer[:n])); err != nil {
					return
				}
			case reset:
				if client, ok := c.client.(*net.TCPConn); ok {
					_ = client.SetLinger(0)
				}
				return
			case discard, hold: // lost
			}
		}
		if err != nil {
			return
		}
	}
}

// decide says what happens to bytes that have come. It waits while they are held.
func (c *conn) decide(current func() action) action {
	for {
		c.proxy.mu.Lock()
		decided, changed := current(), c.proxy.changed
		if c.silent {
			decided = discard
		}
		c.lost = c.lost || decided == discard
		c.proxy.mu.Unlock()
		if decided != hold {
			return decided
		}
		select {
		case <-changed:
		case <-c.closed:
			return discard
		}
	}
}
