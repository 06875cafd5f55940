package api

import (
	"net/http"
	"strconv"
	"sync"
)

// buffer is memory for a body, pooled by newBuffer and release.
type buffer struct{ json []byte }

var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, 8<<10)} }}

func newBuffer() *buffer { return buffers.Get().(*buffer) }

// release returns the memory to the pool, unless it grew beyond the size of a long page.
func (b *buffer) release() {
	const maxBytes = 512 << 10
	if cap(b.json) <= maxBytes {
		b.json = b.json[:0]
		buffers.Put(b)
	}
}

// writeBody answers with a JSON body.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // it fails only if the client disconnected
}
