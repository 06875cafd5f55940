package faults_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func (p *proxy) listen() error {
	address, err := net.ResolveTCPAddr("tcp", p.address)
	if err != nil {
		return err
	}
	listener, err := net.ListenTCP("tcp", address)
	if err != nil {
		return err
	}
	p.listener = listener
	p.pumps.Go(func() { p.accept(listener) })
	return nil
}

// restore undoes what earlier faults did to the listener.
func (p *proxy) restore(now fault) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now != unanswered {
		for _, plug := range p.plugs {
			_ = plug.Close()
		}
		p.plugs = nil
	}
	err := setBacklog(p.listener, backlogOf(now))
	if errors.Is(err, net.ErrClosed) {
		return p.listen()
	}
	return err
}

func backlogOf(f fault) int {
	if f == unanswered {
		return 0
	}
	return 128
}

// plug fills the listener's queue, so that the kernel drops what asks for a connection.
func (p *proxy) plug() error {
	if err := p.restore(unanswered); err != nil {
		return err
	}
	full := 0
	for range 16 {
		conn, err := net.DialTimeout("tcp", p.address, 50*time.Millisecond) //nolint:noctx // the time is short
		if err != nil {
			// The queue is full, for good once accept waits as well.
			if full++; full == 2 {
				return nil
			}
			continue
		}
		full = 0
		p.mu.Lock()
		p.plugs = append(p.plugs, conn)
		p.mu.Unlock()
	}
	return errors.New("the queue of the listener does not fill")
}

// setBacklog changes how many connections wait to be taken; the kernel takes another call of listen for that.
func setBacklog(listener *net.TCPListener, backlog int) error {
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), backlog) }); err != nil {
		return err
	}
	return failed
}

func (p *proxy) accept(listener *net.TCPListener) {
	for {
		conn, err := listener.AcceptTCP()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.accepted++
		p.mu.Unlock()
		// Nobody else is taken meanwhile.
		f, _ := p.when(func(f fault) bool { return f != unanswered })
		if f == reset || f == refused {
			resetConn(conn)
			continue
		}
		p.pumps.Go(func() { p.serve(conn) })
	}
}

// countUnanswered counts as dials, from now until the test ends, those that the kernel leaves unanswered, each once.
// It sees them where the kernel lists its sockets, which is on Linux.
func (p *proxy) countUnanswered(t *testing.T) {
	t.Helper()
	stop := make(chan struct{})
	var counting sync.WaitGroup
	counting.Go(func() {
		seen := map[string]bool{}
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			for _, from := range dialling(p.address) {
				if !seen[from] {
					seen[from] = true
					p.mu.Lock()
					p.accepted++
					p.mu.Unlock()
				}
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		counting.Wait()
	})
}

// dialling lists the sockets that wait for an answer from this address.
func dialling(address string) (from []string) {
	_, port, _ := net.SplitHostPort(address)
	number, _ := strconv.Atoi(port)
	list, _ := os.ReadFile("/proc/net/tcp")
	for line := range strings.Lines(string(list)) {
		// Its number, the local and the remote address, and the state, of which 02 is that a SYN was sent.
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[3] == "02" && strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", number)) {
			from = append(from, fields[1])
		}
	}
	return from
}
