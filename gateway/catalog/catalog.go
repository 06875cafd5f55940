// Package catalog caches the responses of core that all clients share: all clients read one copy of the bytes, and no client
// holds a connection to core while it reads.
//
// It owns the staleness of the copies, and sends one request to core for all clients that wait. Responses that cannot be
// revalidated are not cached; the caller forwards such requests.
package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"intents.internal/gateway/control"
	"intents.internal/gateway/upstream"
	"intents.internal/pkg/wire"
)

const (
	// refreshAfter is the age at which a request makes the catalog revalidate a copy in the background. Core polls its registry
	// for changes every 250 ms, so a client sees a change within a second.
	refreshAfter = 250 * time.Millisecond
	// maxWait bounds the age of a copy that is served, and how long a request waits for core if there is no such copy.
	maxWait = 400 * time.Millisecond
	// fetchTimeout bounds one request to core. It is longer than maxWait, because the first copy of a long document from a
	// distant core takes several round trips.
	fetchTimeout = 5 * time.Second
)

// Field is a header field of a response.
type Field struct{ Name, Value []byte }

// Response is a complete 200 response. It is immutable, so all clients may read it.
type Response struct {
	ETag string
	// Header is the part of core's header that is sent to clients, without Representation: the fields that describe the body,
	// which a 304 does not have.
	Header, Representation []Field
	Body                   []byte
}

// Catalog is safe for concurrent use.
type Catalog struct {
	core *control.Client
	// ctx cancels the requests to core, which may outlast the clients that wait for them.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu        sync.Mutex // for replacing documents
	documents atomic.Pointer[map[string]*document]
}

// New makes an empty catalog.
func New(core *control.Client) *Catalog {
	c := &Catalog{core: core}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.documents.Store(&map[string]*document{})
	return c
}

// Close cancels the requests to core in flight and waits for them. Lookup must not be called after Close.
func (c *Catalog) Close() {
	c.cancel()
	c.tasks.Wait()
}

// Lookup returns core's response at the path and query in the client's preferred content coding, at most maxWait old. It returns
// nil if core did not respond in time, responded with another status than 200, or sent no ETag. waited reports whether the call
// waited for core, because no copy was fresh enough. The caller bounds the targets, which are never evicted.
func (c *Catalog) Lookup(target, acceptEncoding []byte, now time.Time) (response *Response, waited bool) {
	d := (*c.documents.Load())[string(target)]
	if d == nil {
		d = c.add(string(target))
	}
	v := d.variant(acceptEncoding)
	last := v.current.Load()
	if last == nil || now.Sub(last.askedAt) >= maxWait {
		return c.revalidate(v, now), true
	}
	if now.Sub(last.askedAt) >= refreshAfter {
		c.fetchOnce(v, now)
	}
	return last.response, false
}

func (c *Catalog) add(target string) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	documents := *c.documents.Load()
	if d := documents[target]; d != nil {
		return d
	}
	larger := maps.Clone(documents)
	larger[target] = newDocument(target)
	c.documents.Store(&larger)
	return larger[target]
}

// document is one target in each content coding; identity is the last.
type document struct{ variants []variant }

// variant is a document in one content coding.
type variant struct {
	target, coding string
	current        atomic.Pointer[cachedResponse]

	mu sync.Mutex
	// fetching is closed when the request to core ends, nil while there is none.
	fetching chan struct{}
}

// cachedResponse is core's last response.
type cachedResponse struct {
	askedAt time.Time
	// response is nil if clients must not share it.
	response *Response
}

func newDocument(target string) *document {
	d := &document{variants: make([]variant, len(wire.Codings)+1)}
	for i := range d.variants {
		d.variants[i].target = target
		if i < len(wire.Codings) {
			d.variants[i].coding = wire.Codings[i]
		}
	}
	return d
}

func (d *document) variant(acceptEncoding []byte) *variant {
	if len(acceptEncoding) > 0 {
		if i := slices.Index(wire.Codings, wire.PreferredCoding(string(acceptEncoding))); i >= 0 {
			return &d.variants[i]
		}
	}
	return &d.variants[len(wire.Codings)]
}

// fetchOnce starts a request to core, unless one is in flight or has just ended. It returns the channel that is closed when the
// request ends, nil if the copy is current.
func (c *Catalog) fetchOnce(v *variant, now time.Time) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := v.current.Load()
	if last != nil && now.Sub(last.askedAt) < refreshAfter { // fetched while this request waited for the lock
		return nil
	}
	if v.fetching == nil {
		v.fetching = make(chan struct{})
		c.tasks.Go(func() { c.fetch(v, last, now) })
	}
	return v.fetching
}

// revalidate waits for core's response to this request or to the one in flight.
func (c *Catalog) revalidate(v *variant, now time.Time) *Response {
	fetching := c.fetchOnce(v, now)
	if fetching == nil {
		return v.current.Load().response
	}
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	select {
	case <-fetching:
	case <-timeout.C:
		return nil
	}
	if latest := v.current.Load(); time.Since(latest.askedAt) < maxWait {
		return latest.response
	}
	return nil
}

// fetch gets the variant from core with a conditional request.
func (c *Catalog) fetch(v *variant, last *cachedResponse, now time.Time) {
	ctx, cancel := context.WithTimeout(c.ctx, fetchTimeout)
	defer cancel()
	latest := &cachedResponse{askedAt: now}
	etag := ""
	if last != nil && last.response != nil {
		etag = last.response.ETag
	}
	document, err := c.core.Document(ctx, v.target, v.coding, etag)
	switch {
	case err == nil:
		latest.response = newResponse(document)
	case errors.Is(err, control.ErrNotModified) && etag != "":
		latest.response = last.response
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current.Store(latest)
	close(v.fetching)
	v.fetching = nil
}

// newResponse returns nil for a document without an ETag or with a private response.
func newResponse(d control.Document) *Response {
	r := &Response{ETag: d.Header.Get("ETag"), Body: d.Body}
	if r.ETag == "" || d.Header.Get("Set-Cookie") != "" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(d.Header)) {
		field := Field{Name: []byte(name), Value: []byte(strings.Join(d.Header[name], ", "))}
		switch {
		case name == "Content-Type", name == "Content-Encoding":
			r.Representation = append(r.Representation, field)
		case upstream.IsResponseHeader(name):
			r.Header = append(r.Header, field)
		}
	}
	return r
}
