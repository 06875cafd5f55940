package edge_test

import (
	"bufio"
	"io"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// benchConnection sends one request over and over on a connection that stays open, with all that the server does around the handler.
func benchConnection(b *testing.B, g *gateway, raw string) {
	b.Helper()
	c := g.dial(b)
	defer c.Close()
	reader := bufio.NewReaderSize(c.Conn, 64<<10)
	var head fasthttp.ResponseHeader
	b.ReportAllocs()
	for b.Loop() {
		c.write(b, raw)
		err := head.Read(reader)
		if err != nil {
			b.Fatal(err)
		}
		if head.StatusCode() >= fasthttp.StatusBadRequest {
			b.Fatalf("status %d", head.StatusCode())
		}
		if head.StatusCode() == fasthttp.StatusNoContent {
			continue
		}
		if head.ContentLength() >= 0 {
			_, err = reader.Discard(head.ContentLength())
		} else if _, err = io.Copy(io.Discard, httputil.NewChunkedReader(reader)); err == nil {
			_, err = reader.Discard(len("\r\n"))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkConnection(b *testing.B) {
	g, _ := startBench(b, record)
	benchConnection(b, g, request("GET", "/health", "User-Agent: bench/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate, br\r\n", ""))
}

// BenchmarkConnectionPage is a page of 37 KB, from core to the client.
func BenchmarkConnectionPage(b *testing.B) {
	g, core := startBench(b, strings.Repeat("x", 37<<10))
	benchConnection(b, g, request("GET", "/v2/transfers?limit=100", unlimitedKey(core), ""))
}

// BenchmarkConnectionTransfer is a transfer, and core's record of it of 5 KB.
func BenchmarkConnectionTransfer(b *testing.B) {
	g, core := startBench(b, strings.Repeat("x", 5<<10))
	benchConnection(b, g, request("POST", "/v2/transfers", unlimitedKey(core)+jsonType, transfer("eip155:11155111", "eip155:11155111")))
}

// BenchmarkConnectionList is a list of 1 MB that streams in chunks, from core to the client.
func BenchmarkConnectionList(b *testing.B) {
	g, core := startBench(b, strings.Repeat("x", 1<<20))
	benchConnection(b, g, request("GET", "/v2/transfers", unlimitedKey(core), ""))
}
