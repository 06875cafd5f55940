// Package catalog keeps the answers of core that are the same for every client, so that all clients read one copy of the
// bytes and none of them holds a connection to core while it reads.
//
// It owns how old such a copy may be and that core is asked once for all who wait. It refuses to vouch for an answer that it
// cannot revalidate: such requests are the caller's to forward.
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
	"intents.internal/gateway/forward"
	"intents.internal/pkg/wire"
)

const (
	// maxAge is how long an answer is served before core is asked again. Core looks for changes of the registry every 250 ms,
	// so that a client sees a change within a second.
	maxAge = 250 * time.Millisecond
	// maxWait is how long a request waits for core's answer, which is no older than that then.
	maxWait = 400 * time.Millisecond
	// fetchTimeout bounds one request to core. It is longer than maxWait, since the first copy of a long document from a
	// distant core takes several round trips.
	fetchTimeout = 5 * time.Second
)

// Field is a header field of an answer.
type Field struct{ Name, Value []byte }

// Answer is a whole answer with status 200. It never changes, so that any number of clients may read it at once.
type Answer struct {
	ETag string
	// Header is what a client may see of core's header, but for Representation, which describes the body and which a 304 lacks.
	Header, Representation []Field
	Body                   []byte
}

// Catalog is safe for concurrent use.
type Catalog struct {
	core *control.Client
	// ctx ends the requests to core, which are for all clients and so outlast each of them.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu        sync.Mutex // for writing documents
	documents atomic.Pointer[map[string]*document]
}

// New makes a catalog that has asked for nothing yet.
func New(core *control.Client) *Catalog {
	c := &Catalog{core: core}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.documents.Store(&map[string]*document{})
	return c
}

// Close ends the requests to core under way and waits for them. Answer must not be called any more.
func (c *Catalog) Close() {
	c.cancel()
	c.tasks.Wait()
}

// Answer is what core answers at the path and query in the client's preferred coding, at most maxWait old; nil where core did
// not say so in time, does not answer 200, or gives no entity tag to revalidate with. The caller bounds the targets: each is
// kept for as long as the catalog is. It waits for core, and then says so, unless it has an answer younger than maxAge.
func (c *Catalog) Answer(target, acceptEncoding []byte, now time.Time) (answer *Answer, waited bool) {
	d := (*c.documents.Load())[string(target)]
	if d == nil {
		d = c.add(string(target))
	}
	v := d.variant(acceptEncoding)
	if copied := v.current.Load(); copied != nil && now.Sub(copied.askedAt) < maxAge {
		return copied.answer, false
	}
	return c.revalidate(v, now), true
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

// document is one target in each coding, the identity last.
type document struct{ variants []variant }

// variant is a document in one coding.
type variant struct {
	target, coding string
	current        atomic.Pointer[copied]

	mu sync.Mutex
	// fetching is closed once the request to core under way has ended, nil while there is none.
	fetching chan struct{}
}

// copied is what core said when it was last asked.
type copied struct {
	askedAt time.Time
	// answer is nil where it is none that may be shared.
	answer *Answer
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

// revalidate asks core, or waits for whoever has asked already.
func (c *Catalog) revalidate(v *variant, now time.Time) *Answer {
	v.mu.Lock()
	last := v.current.Load()
	if last != nil && now.Sub(last.askedAt) < maxAge { // asked while this one waited for the lock
		v.mu.Unlock()
		return last.answer
	}
	if v.fetching == nil {
		v.fetching = make(chan struct{})
		c.tasks.Go(func() { c.fetch(v, last, now) })
	}
	fetching := v.fetching
	v.mu.Unlock()

	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	select {
	case <-fetching:
	case <-timeout.C:
		return nil
	}
	if latest := v.current.Load(); time.Since(latest.askedAt) < maxWait {
		return latest.answer
	}
	return nil
}

// fetch asks core for the variant, if it has another than the last.
func (c *Catalog) fetch(v *variant, last *copied, now time.Time) {
	ctx, cancel := context.WithTimeout(c.ctx, fetchTimeout)
	defer cancel()
	latest := &copied{askedAt: now}
	etag := ""
	if last != nil && last.answer != nil {
		etag = last.answer.ETag
	}
	document, err := c.core.Document(ctx, v.target, v.coding, etag)
	switch {
	case err == nil:
		latest.answer = newAnswer(document)
	case errors.Is(err, control.ErrNotModified) && etag != "":
		latest.answer = last.answer
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current.Store(latest)
	close(v.fetching)
	v.fetching = nil
}

// newAnswer is nil for a document that could not be revalidated, or that is one client's alone.
func newAnswer(d control.Document) *Answer {
	a := &Answer{ETag: d.Header.Get("ETag"), Body: d.Body}
	if a.ETag == "" || d.Header.Get("Set-Cookie") != "" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(d.Header)) {
		field := Field{Name: []byte(name), Value: []byte(strings.Join(d.Header[name], ", "))}
		switch {
		case name == "Content-Type", name == "Content-Encoding":
			a.Representation = append(a.Representation, field)
		case forward.IsResponseHeader(name):
			a.Header = append(a.Header, field)
		}
	}
	return a
}
