package edge

import (
	"bytes"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/conn"
	"intents.internal/pkg/forwarded"
)

const (
	headerForwardedFor   = "X-Forwarded-For"
	headerForwardedProto = "X-Forwarded-Proto"
)

// logUnreadableEvery is the interval between log lines about a header of proxies.
const logUnreadableEvery = time.Minute

// client returns the client's address and scheme. X-Forwarded-For and X-Forwarded-Proto are used only from a trusted proxy.
func (e *Edge) client(ctx *fasthttp.RequestCtx) (address netip.Addr, proto string) {
	address, proto = peerAddress(ctx), "http"
	if ctx.IsTLS() {
		proto = "https"
	}
	if !e.isTrustedProxy(address) {
		return address, proto
	}
	switch sent := ctx.Request.Header.Peek(headerForwardedProto); {
	case bytes.EqualFold(sent, []byte("https")):
		proto = "https"
	case len(sent) > 0 && !bytes.EqualFold(sent, []byte("http")):
		e.warnUnreadable(headerForwardedProto, sent, address)
	}
	return e.firstUntrusted(address, ctx.Request.Header.PeekAll(headerForwardedFor)), proto
}

// connOf returns the connection of a request, nil if it is not TCP.
func connOf(ctx *fasthttp.RequestCtx) *conn.Client {
	c, _ := ctx.Conn().(*conn.Client)
	return c
}

// replyBuffer returns an empty buffer for the body of the reply, the same at each call.
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
// forged the addresses before it. Of addresses before one that cannot be read nobody knows who sent them.
func (e *Edge) firstUntrusted(nearest netip.Addr, lines [][]byte) netip.Addr {
	for _, line := range slices.Backward(lines) {
		for len(line) > 0 {
			start := bytes.LastIndexByte(line, ',') + 1
			text := bytes.Trim(line[start:], " \t")
			line = line[:max(0, start-1)]
			address, ok := forwarded.ParseAddr(unsafe.String(unsafe.SliceData(text), len(text)))
			if !ok {
				e.warnUnreadable(headerForwardedFor, text, nearest)
				return nearest
			}
			nearest = address
			if !e.isTrustedProxy(nearest) {
				return nearest
			}
		}
	}
	return nearest
}

// warnUnreadable counts a value of a trusted proxy that cannot be read, and logs one now and then: otherwise all clients behind the proxy
// would share its address, and nobody would know why.
func (e *Edge) warnUnreadable(header string, value []byte, proxy netip.Addr) {
	e.metrics.unreadable.WithLabelValues(header).Inc()
	if suppressed, due := e.unreadableLogs.Due(); due {
		e.log.Warn("a proxy in GATEWAY_TRUSTED_PROXIES sends a value that cannot be read, so its own address or http counts; correct the proxy, or the setting",
			"header", header, "value", string(value[:min(len(value), 64)]), "proxy", proxy.String(), "suppressed", suppressed)
	}
}

func (e *Edge) isTrustedProxy(address netip.Addr) bool {
	for _, prefix := range e.trustedProxies {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}
