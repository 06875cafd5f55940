package route

import (
	"net/http"
	"strconv"
	"sync"
)

// Buffer is memory for a body, pooled by NewBuffer and Release.
type Buffer struct{ Bytes []byte }

var buffers = sync.Pool{New: func() any { return &Buffer{make([]byte, 0, 8<<10)} }}

// NewBuffer takes an empty buffer from the pool.
func NewBuffer() *Buffer { return buffers.Get().(*Buffer) }

// Release returns the memory to the pool, unless it grew beyond the size of a long page.
func (b *Buffer) Release() {
	const maxBytes = 512 << 10
	if cap(b.Bytes) <= maxBytes {
		b.Bytes = b.Bytes[:0]
		buffers.Put(b)
	}
}

// WriteBody answers with a JSON body.
func WriteBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // it fails only if the client disconnected
}
