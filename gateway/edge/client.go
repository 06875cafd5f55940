package edge

import (
	"bytes"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/valyala/fasthttp"
)

const (
	headerForwardedFor   = "X-Forwarded-For"
	headerForwardedProto = "X-Forwarded-Proto"
)

// clientOf finds the client's address and the scheme it used. What X-Forwarded-For and X-Forwarded-Proto say is
// believed only of a trusted proxy; of anyone else they are ignored.
func (e *Edge) clientOf(ctx *fasthttp.RequestCtx) (address netip.Addr, proto string) {
	address, _ = netip.AddrFromSlice(ctx.RemoteIP())
	address, proto = address.Unmap(), "http"
	if ctx.IsTLS() {
		proto = "https"
	}
	if !e.trusts(address) {
		return address, proto
	}
	if said := ctx.Request.Header.Peek(headerForwardedProto); string(said) == "https" {
		proto = "https"
	}
	return e.beyondProxies(address, ctx.Request.Header.PeekAll(headerForwardedFor)), proto
}

// beyondProxies walks the addresses from the nearest outwards to the first that is no trusted proxy's: whoever is
// farther out may have made up the rest.
func (e *Edge) beyondProxies(nearest netip.Addr, lines [][]byte) netip.Addr {
	for _, line := range slices.Backward(lines) {
		for len(line) > 0 {
			start := bytes.LastIndexByte(line, ',') + 1
			said := bytes.Trim(line[start:], " \t")
			line = line[:max(0, start-1)]
			address, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(said), len(said)))
			if err != nil {
				return nearest
			}
			nearest = address.Unmap().WithZone("")
			if !e.trusts(nearest) {
				return nearest
			}
		}
	}
	return nearest
}

func (e *Edge) trusts(address netip.Addr) bool {
	for _, prefix := range e.trusted {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}
