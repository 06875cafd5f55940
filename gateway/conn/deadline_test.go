package conn_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"intents.internal/gateway/conn"
)

// counting counts how often the deadlines of a connection are really set.
type counting struct {
	net.Conn
	set int
}

func (c *counting) SetReadDeadline(t time.Time) error {
	c.set++
	return c.Conn.SetReadDeadline(t)
}

func (c *counting) SetWriteDeadline(t time.Time) error {
	c.set++
	return c.Conn.SetWriteDeadline(t)
}

// countedPair is a connection over TCP, whose kernel buffers end, and its other end.
func countedPair(t *testing.T) (under *counting, c *conn.DeadlineConn, other net.Conn) {
	t.Helper()
	here, there := pair(t)
	under = &counting{Conn: here}
	return under, conn.NewDeadlineConn(under), there
}

func TestDeadlineConn_LaterDeadline(t *testing.T) {
	t.Parallel()
	under, c, other := countedPair(t)
	start := time.Now()
	for n := range 100 {
		if err := errors.Join(c.SetReadDeadline(start.Add(time.Hour+time.Duration(n)*time.Second)), c.SetWriteDeadline(start.Add(time.Hour))); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("y")); err != nil {
			t.Fatal(err)
		}
	}
	if under.set != 2 {
		t.Errorf("100 requests set a deadline %d times, want once for each direction", under.set)
	}
}

func TestDeadlineConn_ReadDeadline(t *testing.T) {
	t.Parallel()
	for name, deadlines := range map[string][]time.Duration{
		"set once":       {50 * time.Millisecond},
		"moved on":       {10 * time.Millisecond, 60 * time.Millisecond, 120 * time.Millisecond},
		"moved back":     {time.Hour, 50 * time.Millisecond},
		"on, then back":  {20 * time.Millisecond, time.Hour, 60 * time.Millisecond},
		"already past":   {-time.Second},
		"none, then one": {0, 40 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c, _ := countedPair(t)
			began := time.Now()
			var last time.Time
			for _, after := range deadlines {
				last = time.Time{}
				if after != 0 {
					last = began.Add(after)
				}
				if err := c.SetReadDeadline(last); err != nil {
					t.Fatal(err)
				}
			}
			_, err := c.Read(make([]byte, 1))
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("error %v, want that of a deadline", err)
			}
			if time.Now().Before(last) {
				t.Errorf("failed %s before the deadline", time.Until(last))
			}
		})
	}
}

func TestDeadlineConn_DeadlineRemoved(t *testing.T) {
	t.Parallel()
	_, c, other := countedPair(t)
	if err := errors.Join(c.SetDeadline(time.Now().Add(10*time.Millisecond)), c.SetDeadline(time.Time{})); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _, _ = other.Write([]byte("x")) })
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

func TestDeadlineConn_WriteAfterEarlyDeadline(t *testing.T) {
	t.Parallel()
	const size = 32 << 20 // more than the kernel takes while nobody reads
	sent := make([]byte, size)
	for n := range sent {
		sent[n] = byte(n % 251)
	}
	for name, write := range map[string]func(*conn.DeadlineConn) (int, error){
		"Write": func(c *conn.DeadlineConn) (int, error) { return c.Write(sent) },
		"WriteBuffers": func(c *conn.DeadlineConn) (int, error) {
			return c.WriteBuffers(net.Buffers{sent[:300], sent[300 : size/2], nil, sent[size/2:]})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			under, _, other := countedPair(t)
			c := conn.NewDeadlineConn(under.Conn)
			if err := c.SetWriteDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			received := make(chan []byte, 1)
			time.AfterFunc(100*time.Millisecond, func() {
				got := make([]byte, size)
				n, _ := io.ReadFull(other, got)
				received <- got[:n]
			})
			n, err := write(c)
			if err != nil || n != size {
				t.Fatalf("wrote %d of %d: %v", n, size, err)
			}
			if got := <-received; !bytes.Equal(got, sent) {
				t.Errorf("%d of %d bytes arrived, or others", len(got), size)
			}
		})
	}
}

func TestDeadlineConn_WriteDeadline(t *testing.T) {
	t.Parallel()
	_, c, _ := countedPair(t)
	last := time.Now().Add(80 * time.Millisecond)
	if err := errors.Join(c.SetWriteDeadline(time.Now().Add(20*time.Millisecond)), c.SetWriteDeadline(last)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Write(make([]byte, 32<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().Before(last) {
		t.Errorf("%v, %s before the deadline", err, time.Until(last))
	}
}
