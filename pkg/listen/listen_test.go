package listen_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"intents.internal/pkg/listen"
)

// A client that reads nothing is not given megabytes of the server's memory.
func TestTCP_SlowReader(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux's buffers are known here")
	}
	listener, err := listen.TCP(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()

	held := 0
	for chunk := make([]byte, 4<<10); err == nil; {
		if err := server.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var n int
		n, err = server.Write(chunk)
		held += n
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	// The client's own buffer, of 64 to 128 KiB while it reads nothing, holds as much again.
	if most := 3 * listen.Unsent; held > most {
		t.Errorf("%d bytes were taken for a client that reads nothing, more than %d", held, most)
	}
}
