package forward_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"intents.internal/pkg/testkit/asynctest"
)

// movable is the address of every host in .test.
var movable = func() *atomic.Pointer[net.IP] {
	var ip atomic.Pointer[net.IP]
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go answerName(ours, &ip)
		return theirs, nil
	}}
	return &ip
}()

// answerName answers one question as a name server does over TCP: a length, then the message.
func answerName(conn net.Conn, ip *atomic.Pointer[net.IP]) {
	defer conn.Close()
	query := make([]byte, 4096)
	n, err := conn.Read(query)
	for err == nil && n < 2 || err == nil && n < 2+int(query[0])<<8+int(query[1]) {
		var more int
		more, err = conn.Read(query[n:])
		n += more
	}
	if err != nil {
		return
	}
	message := query[2:n]
	end := 12 + bytes.IndexByte(message[12:], 0) + 1 // of the name
	answers := byte(0)
	if message[end+1] == 1 && ip.Load() != nil { // A
		answers = 1
	}
	// The same id, "this is the answer", one question, and none besides what follows.
	reply := append([]byte{message[0], message[1], 0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0}, message[12:end+4]...)
	if answers > 0 {
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 2, 88, 0, 4) // the same name, for ten minutes
		reply = append(reply, ip.Load().To4()...)
	}
	_, _ = conn.Write(append([]byte{byte(len(reply) >> 8), byte(len(reply))}, reply...))
}

// A core that is replaced may come back at another address under its name, as in every container network.
func TestClient_CoreMoves(t *testing.T) {
	t.Parallel()
	before, after := net.IPv4(127, 0, 0, 2), net.IPv4(127, 0, 0, 3)
	start := func(ip net.IP, port int, answer string) (*core, int) {
		c := newCore(t, name(answer))
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: port})
		if err != nil {
			t.Skip("this system has one loopback address only:", err)
		}
		_ = c.Listener.Close()
		c.Listener = listener
		c.Start()
		return c, listener.Addr().(*net.TCPAddr).Port
	}
	old, port := start(before, 0, "before")
	movable.Store(&before)
	c := newClient(t, settings{}, fmt.Sprintf("http://core.test:%d", port))
	asynctest.Eventually(t, "the core is found by its name", func() bool { return c.answer(read) == "before" })

	movable.Store(&after)
	start(after, port, "after")
	old.CloseClientConnections()
	old.Close()
	asynctest.Eventually(t, "it is found where it went", func() bool { return c.answer(read) == "after" })
}
