package coretest

import (
	"io"
	"net/http"

	"intents.internal/pkg/wire"
)

// Request is what the stand-in received.
type Request struct {
	Method, Target, Host string
	Header               http.Header
	Body                 string
}

// Requests are those received so far that were not internal.
func (c *Core) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Request(nil), c.requests...)
}

// Take returns the requests received since it was last called, byte for byte but for the line with the secret, and forgets
// them.
func (c *Core) Take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	raw := c.raw
	c.raw, c.requests = nil, nil
	return raw
}

func (c *Core) record(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	header := r.Header.Clone()
	header.Del(wire.HeaderGatewaySecret) // demanded already
	c.mu.Lock()
	c.requests = append(c.requests, Request{Method: r.Method, Target: r.RequestURI, Host: r.Host, Header: header, Body: string(body)})
	c.raw = append(c.raw, rawRequest(r))
	c.mu.Unlock()
	if err != nil {
		return // half a request was received all the same
	}
	if c.Public != nil {
		c.Public(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("[]"))
}
