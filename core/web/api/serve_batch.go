package api

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strconv"

	"intents.internal/core/intents"
	"intents.internal/pkg/wire"
)

// serveBatch answers POST /internal/batch: each request as if it had come alone, all at the same time. New intents wait for their commit
// together; a request that cannot (a refusal, a repeat) waits for nobody.
func (s *Server) serveBatch(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(wire.HeaderBatch) != wire.BatchVersion {
		writeError(w, refuse(w, errBatchVersion))
		return
	}
	requests, err := readBatch(r)
	if err != nil {
		writeError(w, refuse(w, errBatch))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	b := &batch{
		server: s, to: w, frames: newBuffer(), left: len(requests),
		results: make(chan intents.Result, len(requests)), answered: make(chan *member, len(requests)),
	}
	defer b.frames.release()
	b.start(ctx, requests)
	b.finish(ctx)
	if b.broken {
		panic(http.ErrAbortHandler)
	}
}

// batch is requests that came together.
type batch struct {
	server *Server
	// waiting are the members whose inserts have no result. left is how many members have no response.
	waiting []*member
	left    int
	// results and answered have room for all members: those whose insert has a result, and those that were answered alone.
	results  chan intents.Result
	answered chan *member

	to http.ResponseWriter
	// frames are responses that are not written yet.
	frames *buffer
	// started is set once a part of the response was written, broken if a response broke off or could not be written.
	started, broken bool
}

// member is a request of a batch.
type member struct {
	number   int
	exchange *exchange
	response response
	// creation is that of a new intent, else nil.
	creation *intents.Creation
	// aborted is set if the response is incomplete.
	aborted bool
}

// start begins all requests.
func (b *batch) start(ctx context.Context, requests []*http.Request) {
	members, inserts := make([]member, len(requests)), make([]*intents.Insert, 0, len(requests))
	for number, request := range requests {
		m := &members[number]
		m.number, m.response = number, response{header: http.Header{}}
		m.exchange = b.server.begin(ctx, &m.response, request)
		var alone endpoint
		prepare := func(_ http.ResponseWriter, r *http.Request) (err error) {
			alone, err = b.prepare(m, r)
			return err
		}
		switch err := recoverPanic(prepare, nil, m.exchange.request); {
		case err != nil:
			m.end(err)
			b.add(m)
		case alone != nil:
			b.answerAlone(m, alone)
		default:
			inserts = append(inserts, m.creation.Insert)
			b.waiting = append(b.waiting, m)
		}
	}
	b.server.Transfers.Enqueue(inserts...)
}

// prepare makes the insert of a member. It returns an endpoint instead for a request that is refused or repeated, or uses a quote.
func (b *batch) prepare(m *member, r *http.Request) (alone endpoint, err error) {
	c, err := readCreateRequest(r)
	if err != nil {
		return nil, err
	}
	if c.request.QuoteID == "" {
		if m.creation, err = b.server.Intents.Prepare(r.Context(), c.by, c.request, c.key, b.results); err == nil {
			return nil, nil //nolint:nilnil // the insert is the answer's
		}
	}
	return func(w http.ResponseWriter, r *http.Request) error { return b.server.create(w, r, c) }, nil
}

// finish waits for all responses and writes them once they are there.
func (b *batch) finish(ctx context.Context) {
	for ended := ctx.Done(); b.left > 0; {
		b.write()
		select {
		case m := <-b.answered:
			b.add(m)
		case r := <-b.results:
			b.inserted(r)
		case <-ended:
			ended = nil
			for len(b.results) > 0 {
				b.inserted(<-b.results)
			}
			for len(b.waiting) > 0 {
				b.inserted(b.server.Transfers.Abandon(b.waiting[0].creation.Insert, ctx.Err()))
			}
		}
	}
	b.write()
}

// inserted answers the member whose insert has a result. A result that comes after the member was answered means nothing.
func (b *batch) inserted(r intents.Result) {
	n := slices.IndexFunc(b.waiting, func(m *member) bool { return m.creation.Insert == r.Insert })
	if n < 0 {
		return
	}
	m := b.waiting[n]
	b.waiting = slices.Delete(b.waiting, n, n+1)
	answer := func(w http.ResponseWriter, request *http.Request) error {
		record, replayed, err := b.server.Intents.Finish(request.Context(), m.creation, r)
		if err == nil {
			writeCreated(w, record, replayed)
		}
		return err
	}
	if r.IsDuplicate() { // it reads the database
		b.answerAlone(m, answer)
		return
	}
	m.answer(answer)
	b.add(m)
}

// answerAlone answers a member that nobody waits for.
func (b *batch) answerAlone(m *member, e endpoint) {
	go func() {
		m.answer(e)
		b.answered <- m
	}()
}

func (m *member) answer(e endpoint) { m.end(recoverPanic(e, m.exchange.response, m.exchange.request)) }

func (m *member) end(cause error) { m.aborted = m.exchange.end(cause, transferFallback) }

// add adds a response to those that are to be written.
func (b *batch) add(m *member) {
	b.left--
	if m.aborted {
		b.broken = true
		return
	}
	b.frames.json = wire.AppendFrame(b.frames.json, m.number, m.response.message.json)
	m.response.message.release()
}

// write writes the responses that are there at once, unless others are about to join them.
func (b *batch) write() {
	if len(b.frames.json) == 0 {
		return
	}
	last := b.left == 0 && !b.broken
	if b.left > 0 {
		// Who writes the rows runs first, so that the other responses of the same commit join this write.
		runtime.Gosched()
		runtime.Gosched()
		if len(b.results)+len(b.answered) > 0 {
			return
		}
	}
	if !b.started {
		b.started = true
		b.to.Header().Set("Content-Type", "application/octet-stream")
		if last {
			b.to.Header().Set("Content-Length", strconv.Itoa(len(b.frames.json)))
		}
	}
	_, err := b.to.Write(b.frames.json)
	if err == nil && !last {
		err = http.NewResponseController(b.to).Flush()
	}
	b.broken = b.broken || err != nil
	b.frames.json = b.frames.json[:0]
}
