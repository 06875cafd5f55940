package edge

import (
	"bytes"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

const (
	continueExpected = "100-continue"
	// noBody is what fasthttp says of a request that neither has a length nor is chunked.
	noBody = -2
)

// onHeaders sees a request when its headers have been read and its body has not. fasthttp goes on by its own reading of
// them, so what it reads otherwise than it should is put right here. A body whose framing is refused is not read at all:
// the guard answers at once, and nobody has to guess where that body ends.
func (e *Edge) onHeaders(h *fasthttp.RequestHeader) {
	// fasthttp knows close in lower case and by itself only.
	if !h.ConnectionClose() && slices.ContainsFunc(h.PeekAll(fasthttp.HeaderConnection), saysClose) {
		h.SetConnectionClose()
	}
	if !h.IsHTTP11() {
		h.Del(fasthttp.HeaderExpect) // HTTP/1.0 has no interim answers
	}
	if h.ContentLength() == noBody {
		return
	}
	// fasthttp knows the expectation in lower case only.
	if bytes.EqualFold(h.Peek(fasthttp.HeaderExpect), []byte(continueExpected)) {
		h.Set(fasthttp.HeaderExpect, continueExpected)
	}
	var f framing
	if r := f.check(h, e.maxBody); r != nil && r != tooLong { // which fasthttp does not read either
		h.SetContentLength(0)
		h.SetConnectionClose()
	}
}

// saysClose reports whether close is one of the options in a Connection header.
func saysClose(options []byte) bool {
	for option := range bytes.SplitSeq(options, []byte(",")) {
		if bytes.EqualFold(bytes.Trim(option, " \t"), []byte("close")) {
			return true
		}
	}
	return false
}

// hasTrailers reports whether there are headers that the block before the body does not have: fasthttp adds to them what
// follows a chunked body, announced or not.
func hasTrailers(h *fasthttp.RequestHeader) bool {
	unseen := map[string]int{}
	for line := range bytes.Lines(h.RawHeaders()) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		unseen[strings.ToLower(string(name))]--
	}
	var whole fasthttp.RequestHeader
	h.CopyTo(&whole) // whose cookies are taken apart by being listed
	for key := range whole.All() {
		name := strings.ToLower(string(key))
		if unseen[name]++; unseen[name] > 0 && name != "content-length" && name != "connection" { // of which fasthttp has its own idea
			return true
		}
	}
	return false
}
