package coretest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"sync/atomic"

	"intents.internal/pkg/wire"
)

// Documents are answers that every client gets alike, with the headers that core gives them: an entity tag, and gzip for a
// client that takes it. Down makes them answer 503.
type Documents struct {
	Down atomic.Bool
	// Asked counts the requests, Sent those that were answered with a body.
	Asked, Sent atomic.Int64
	// BeforeAnswer, if set, runs before each answer.
	BeforeAnswer func()

	mu     sync.Mutex
	bodies map[string]string
}

// Put makes this the body at the path and query.
func (d *Documents) Put(target, body string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bodies == nil {
		d.bodies = map[string]string{}
	}
	d.bodies[target] = body
}

func (d *Documents) body(target string) (body string, found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	body, found = d.bodies[target]
	return body, found
}

func (d *Documents) has(target string) bool {
	_, found := d.body(target)
	return found
}

func (d *Documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.Asked.Add(1)
	if d.BeforeAnswer != nil {
		d.BeforeAnswer()
	}
	body, found := d.body(r.RequestURI)
	switch {
	case d.Down.Load():
		refuse(w, http.StatusServiceUnavailable, wire.ServiceUnavailable)
		return
	case !found:
		refuse(w, http.StatusNotFound, wire.NotFound)
		return
	}
	sum := sha256.Sum256([]byte(body))
	etag := `W/"` + hex.EncodeToString(sum[:12]) + `"`
	header := w.Header()
	header.Set("ETag", etag)
	header.Set("Cache-Control", "private, no-cache")
	header.Set("Vary", "Accept-Encoding")
	header.Set("X-Internal", "for no client")
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", "application/json")
	text := []byte(body)
	if r.Header.Get("Accept-Encoding") == "gzip" {
		header.Set("Content-Encoding", "gzip")
		text = Gzip(body)
	}
	d.Sent.Add(1)
	_, _ = w.Write(text) // the client is gone if this fails
}

// Gzip is the text as Documents send it compressed.
func Gzip(text string) []byte {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write([]byte(text)) // a bytes.Buffer takes everything
	_ = writer.Close()
	return out.Bytes()
}
