package faults_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"intents.internal/pkg/asynctest"
)

// briefly is how long the proxy's own tests wait for what shall not come.
const briefly = 100 * time.Millisecond

// The other tests show something only if the proxy does to connections what it says.
func TestProxyBreaksConnections(t *testing.T) {
	t.Parallel()
	p := startProxy(t, startEcho(t))

	open := p.mustDial(t)
	mustEcho(t, open, "through")

	p.inflict(t, refused)
	if _, err := open.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an open connection gets %v where new ones are refused", err)
	}
	if _, err := p.dial(t); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a dial gets %v where connections are refused", err)
	}

	p.inflict(t, reset)
	gone, err := p.dial(t)
	if err == nil {
		_, err = gone.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a new connection gets %v where all are reset", err)
	}

	p.heal(t)
	held := p.mustDial(t)
	p.inflict(t, blackHole)
	mustBeSilent(t, held, "held up")
	p.heal(t)
	mustRead(t, held, "held up")

	p.inflict(t, unanswered)
	mustBeSilent(t, held, "held up again")
	if _, err := p.dial(t); !os.IsTimeout(err) {
		t.Errorf("a dial gets %v where it shall get no answer", err)
	}
	p.heal(t)
	mustRead(t, held, "held up again")
	mustEcho(t, p.mustDial(t), "dials are answered again")

	p.inflict(t, repliesDropped)
	mustBeSilent(t, held, "dropped")
	asynctest.Eventually(t, "the reply has been dropped", func() bool { return p.lost() == len("dropped") })
	p.heal(t)
	mustEcho(t, held, "another") // and not what was dropped

	p.losesRepliesTo("asked")
	p.inflict(t, cutAtReply)
	mustEcho(t, held, "told")
	if _, err := held.Write([]byte("asked")); err != nil {
		t.Fatal(err)
	}
	if n, err := held.Read(make([]byte, 1)); n > 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes and %v in place of a reply", n, err)
	}
	p.heal(t)

	stranded := p.mustDial(t)
	mustEcho(t, stranded, "before")
	p.strand()
	mustBeSilent(t, stranded, "to nobody")
	mustEcho(t, p.mustDial(t), "others")
}

// startEcho is the address of a server that says what it is told.
func startEcho(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return listener.Addr().String()
}

func (p *proxy) dial(t *testing.T) (net.Conn, error) {
	t.Helper()
	return (&net.Dialer{Timeout: briefly}).DialContext(t.Context(), "tcp", p.address)
}

func (p *proxy) mustDial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func mustEcho(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	mustRead(t, conn, text)
}

func mustRead(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Errorf("read %q and %v, want %q", got, err, text)
	}
}

// mustBeSilent says something to which nothing may come back.
func mustBeSilent(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(briefly)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 64)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes and %v came back", n, err)
	}
}
