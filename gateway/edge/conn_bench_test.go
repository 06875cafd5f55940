package edge_test

import (
	"bufio"
	"io"
	"testing"

	"intents.internal/gateway/coretest"
)

// BenchmarkConnection is a request over a connection that stays open, with all that the server does around the handler.
func BenchmarkConnection(b *testing.B) {
	g := start(b, coretest.Start(b, nil), settings{})
	c := g.dial(b)
	defer c.Close()
	raw := request("GET", "/health", "User-Agent: bench/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate, br\r\n", "")
	c.write(b, raw)
	answer := make([]byte, 4<<10)
	n, err := c.Read(answer)
	if err != nil {
		b.Fatal(err)
	}
	reader := bufio.NewReader(c.Conn)
	b.ReportAllocs()
	for b.Loop() {
		c.write(b, raw)
		if _, err := io.ReadFull(reader, answer[:n]); err != nil {
			b.Fatal(err)
		}
	}
}
