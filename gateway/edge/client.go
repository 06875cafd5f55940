package edge

import (
	"bytes"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/conn"
)

const (
	headerForwardedFor   = "X-Forwarded-For"
	headerForwardedProto = "X-Forwarded-Proto"
)

// client returns the client's address and scheme. X-Forwarded-For and X-Forwarded-Proto are used only from a trusted proxy.
func (e *Edge) client(ctx *fasthttp.RequestCtx) (address netip.Addr, proto string) {
	address, proto = peerAddress(ctx), "http"
	if ctx.IsTLS() {
		proto = "https"
	}
	if !e.isTrustedProxy(address) {
		return address, proto
	}
	if string(ctx.Request.Header.Peek(headerForwardedProto)) == "https" {
		proto = "https"
	}
	return e.firstUntrusted(address, ctx.Request.Header.PeekAll(headerForwardedFor)), proto
}

// connOf returns the connection of a request, nil if it is not TCP.
func connOf(ctx *fasthttp.RequestCtx) *conn.Client {
	c, _ := ctx.Conn().(*conn.Client)
	return c
}

// replyBuffer returns an empty buffer for the body of a reply.
func (x *exchange) replyBuffer() []byte {
	if c := connOf(x.ctx); c != nil {
		return c.ReplyBuffer()
	}
	return nil
}

// lingerOnClose makes the connection's Close linger, because a part of this request is unread.
func lingerOnClose(ctx *fasthttp.RequestCtx) {
	if c := connOf(ctx); c != nil {
		c.LingerOnClose()
	}
}

// peerAddress returns the address of the other end of the connection.
func peerAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	if c := connOf(ctx); c != nil {
		return c.Address()
	}
	return conn.AddressOf(ctx.RemoteAddr())
}

// firstUntrusted returns the first address, from the nearest hop outwards, that is not a trusted proxy. The client may have
// forged the addresses before it.
func (e *Edge) firstUntrusted(nearest netip.Addr, lines [][]byte) netip.Addr {
	for _, line := range slices.Backward(lines) {
		for len(line) > 0 {
			start := bytes.LastIndexByte(line, ',') + 1
			text := bytes.Trim(line[start:], " \t")
			line = line[:max(0, start-1)]
			address, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(text), len(text)))
			if err != nil {
				return nearest
			}
			nearest = address.Unmap().WithZone("")
			if !e.isTrustedProxy(nearest) {
				return nearest
			}
		}
	}
	return nearest
}

func (e *Edge) isTrustedProxy(address netip.Addr) bool {
	for _, prefix := range e.trustedProxies {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}
