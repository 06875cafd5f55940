package faults_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// link is one connection through the proxy.
type link struct {
	client, server *net.TCPConn
	stranded       bool
	marked         bool // a request with the marker is to be answered
}

func (p *proxy) serve(client *net.TCPConn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	upstream, err := net.DialTimeout("tcp", target, time.Second) //nolint:noctx // the time is short
	if err != nil {
		resetConn(client)
		return
	}
	l := &link{client: client, server: upstream.(*net.TCPConn)}
	p.mu.Lock()
	p.open[l] = struct{}{}
	p.mu.Unlock()
	var pumps sync.WaitGroup
	pumps.Go(func() { p.pump(l, l.client, l.server, false) })
	pumps.Go(func() { p.pump(l, l.server, l.client, true) })
	pumps.Wait()
	_, _ = l.client.Close(), l.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, l)
}

// pump passes on what comes, as the fault of the moment has it.
func (p *proxy) pump(l *link, from, to *net.TCPConn, reply bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.forward(l, to, buffer[:n], reply) {
			return
		}
		if errors.Is(err, io.EOF) {
			p.when(func(f fault) bool { return f != blackHole && f != unanswered })
			_ = to.CloseWrite()
			return
		}
		if err != nil {
			l.reset()
			return
		}
	}
}

// forward tells whether the connection is still there after it.
func (p *proxy) forward(l *link, to *net.TCPConn, data []byte, reply bool) bool {
	if !reply {
		p.noteRequest(l, data)
	}
	f, latency := p.when(func(f fault) bool { return f != blackHole && f != unanswered })
	p.mu.Lock()
	stranded, lose, changed := l.stranded, reply && (l.marked || p.marker == nil), p.changed
	p.mu.Unlock()
	switch {
	case stranded, lose && f == repliesDropped:
		return true
	case f == reset, f == refused, lose && f == cutAtReply:
		l.reset()
		return false
	case reply && f == slow:
		timer := time.NewTimer(latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-changed:
		}
	}
	_, err := to.Write(data)
	if err != nil {
		l.reset()
	}
	return err == nil
}

func (p *proxy) noteRequest(l *link, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests += len(data)
	l.marked = p.marker != nil && bytes.Contains(data, p.marker)
}

func (l *link) reset() {
	resetConn(l.client)
	resetConn(l.server)
}

func resetConn(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
