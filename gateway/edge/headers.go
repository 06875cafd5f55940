package edge

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

const (
	expect100Continue = "100-continue"
	// noBody is fasthttp's content length for a request with neither Content-Length nor Transfer-Encoding.
	noBody = -2
)

// handleHeader runs between the header and the body, and corrects fasthttp's parse of the header. The body is not read if its
// framing is rejected: the request is answered at once and the connection closes, so the end of the body does not matter.
func (e *Edge) handleHeader(h *fasthttp.RequestHeader) {
	// fasthttp recognizes close only in lower case and as the only option.
	if !h.ConnectionClose() && slices.ContainsFunc(h.PeekAll(fasthttp.HeaderConnection), hasClose) {
		h.SetConnectionClose()
	}
	if !h.IsHTTP11() {
		h.Del(fasthttp.HeaderExpect) // HTTP/1.0 has no interim responses
	}
	// fasthttp recognizes the expectation only in lower case.
	if h.ContentLength() != noBody && bytes.EqualFold(h.Peek(fasthttp.HeaderExpect), []byte(expect100Continue)) {
		h.Set(fasthttp.HeaderExpect, expect100Continue)
	}
	var f framing
	switch r := f.check(h, e.maxBody); {
	case r != nil:
		h.Set(framingResult, strconv.Itoa(r.number))
		if r != tooLong { // fasthttp does not read a body that is too long
			h.SetContentLength(0)
			h.SetConnectionClose()
		}
	case f.seen&hasTransferEncoding != 0:
		h.SetBytesV(framingResult, chunkedBody)
	}
}

// hasClose reports whether close is one of the options of a Connection field.
func hasClose(options []byte) bool {
	for option := range bytes.SplitSeq(options, []byte(",")) {
		if bytes.EqualFold(bytes.Trim(option, " \t"), []byte("close")) {
			return true
		}
	}
	return false
}

// hasTrailers reports whether fasthttp's header has fields that the raw header block lacks: fasthttp adds trailers to the header,
// announced or not.
func hasTrailers(h *fasthttp.RequestHeader) bool {
	unseen := map[string]int{}
	for line := range bytes.Lines(h.RawHeaders()) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		unseen[strings.ToLower(string(name))]--
	}
	var whole fasthttp.RequestHeader
	h.CopyTo(&whole) // All modifies the cookies
	for key := range whole.All() {
		name := strings.ToLower(string(key))
		if unseen[name]++; unseen[name] > 0 && name != "content-length" && name != "connection" && name != framingResult { // these are not the client's
			return true
		}
	}
	return false
}
