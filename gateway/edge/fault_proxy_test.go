package edge_test

import (
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// faultProxy is a way to Redis that can be blocked: connections stay open, and nothing comes through.
type faultProxy struct {
	url      string
	listener net.Listener
	target   string
	running  sync.WaitGroup
	blocked  atomic.Bool

	mu   sync.Mutex
	open []net.Conn
}

func newFaultProxy(t *testing.T, to string) *faultProxy {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &faultProxy{listener: listener, target: target.Host}
	s.running.Go(s.serve)
	t.Cleanup(func() {
		s.close()
		s.running.Wait()
	})
	target.Host = listener.Addr().String()
	s.url = target.String()
	return s
}

// close ends all connections and takes no more.
func (s *faultProxy) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.open {
		_ = conn.Close()
	}
}

func (s *faultProxy) serve() {
	for {
		near, err := s.listener.Accept()
		if err != nil {
			return
		}
		far, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", s.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		s.mu.Lock()
		s.open = append(s.open, near, far)
		s.mu.Unlock()
		s.running.Go(func() { s.carry(near, far) })
		s.running.Go(func() { s.carry(far, near) })
	}
}

func (s *faultProxy) carry(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if s.blocked.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
