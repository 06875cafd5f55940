package conn_test

import (
	"io"
	"net"
	"testing"
	"time"

	"intents.internal/gateway/conn"
)

// pair is the two ends of a TCP connection.
func pair(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	there, err = net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	here, err = listener.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	return here, there
}

// becomes waits for the state: what the other end does arrives in its own time.
func becomes(t *testing.T, c net.Conn, want conn.State) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	eye := conn.NewPeeker(c)
	for {
		got := eye.Peek()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("state %d, want %d", got, want)
		}
		<-ticker.C
	}
}

func TestPeeker(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	becomes(t, here, conn.Idle)
	if _, err := io.WriteString(there, "next"); err != nil {
		t.Fatal(err)
	}
	becomes(t, here, conn.Readable)
	if err := there.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(here, got); err != nil || string(got) != "next" {
		t.Errorf("after the look, %q can be read, %v", got, err)
	}
	becomes(t, here, conn.Closed)
}

func TestPeeker_Reset(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	if err := there.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	_ = there.Close()
	becomes(t, here, conn.Closed)
	_ = here.Close()
	becomes(t, here, conn.Closed)
}

func TestPeeker_NoSocket(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	if got := conn.NewPeeker(here).Peek(); got != conn.Unknown {
		t.Errorf("state %d", got)
	}
}
