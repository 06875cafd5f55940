package socket_test

import (
	"fmt"
	"io"
	"net"
	"testing"

	"intents.internal/gateway/socket"
	"intents.internal/pkg/asynctest"
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
func becomes(t *testing.T, conn net.Conn, want socket.State) {
	t.Helper()
	eye := socket.NewEye(conn)
	asynctest.Eventually(t, fmt.Sprintf("state %d", want), func() bool { return eye.Look() == want })
}

func TestLook(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	becomes(t, here, socket.Quiet)
	if _, err := io.WriteString(there, "next"); err != nil {
		t.Fatal(err)
	}
	becomes(t, here, socket.Readable)
	if err := there.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(here, got); err != nil || string(got) != "next" {
		t.Errorf("after the look, %q can be read, %v", got, err)
	}
	becomes(t, here, socket.Ended)
}

func TestLookAtWhatWasReset(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	if err := there.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	_ = there.Close()
	becomes(t, here, socket.Ended)
	_ = here.Close()
	becomes(t, here, socket.Ended)
}

func TestLookAtWhatIsNoSocket(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	if got := socket.NewEye(here).Look(); got != socket.Unknown {
		t.Errorf("state %d", got)
	}
}
