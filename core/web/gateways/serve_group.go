package gateways

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strconv"

	"intents.internal/core/intents"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// serveGroup answers POST /internal/batch: each request as if it had come alone, all at the same time. New intents wait for their commit
// together; a request that cannot (a refusal, a repeat) waits for nobody.
func (s *Server) serveGroup(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(wire.HeaderBatch) != wire.BatchVersion {
		route.WriteError(w, r, route.Refuse(w, errGroupVersion))
		return
	}
	requests, err := readGroup(r)
	if err != nil {
		route.WriteError(w, r, route.Refuse(w, errGroup))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), route.Timeout)
	defer cancel()
	g := &group{
		server: s, to: w, frames: route.NewBuffer(), left: len(requests),
		results: make(chan intents.Result, len(requests)), answered: make(chan *member, len(requests)),
	}
	defer g.frames.Release()
	g.start(ctx, requests)
	g.finish(ctx)
	if g.broken {
		panic(http.ErrAbortHandler)
	}
}

// group is requests that came together.
type group struct {
	server *Server
	// waiting are the members whose inserts have no result. left is how many members have no response.
	waiting []*member
	left    int
	// results and answered have room for all members: those whose insert has a result, and those that were answered alone.
	results  chan intents.Result
	answered chan *member

	to http.ResponseWriter
	// frames are responses that are not written yet.
	frames *route.Buffer
	// started is set once a part of the response was written, broken if a response broke off or could not be written.
	started, broken bool
}

// member is a request of a group.
type member struct {
	number   int
	exchange *route.Exchange
	response response
	// creation is that of a new intent, else nil.
	creation *intents.Creation
	// aborted is set if the response is incomplete.
	aborted bool
}

// start begins all requests.
func (g *group) start(ctx context.Context, requests []*http.Request) {
	members, inserts := make([]member, len(requests)), make([]*intents.Insert, 0, len(requests))
	for number, request := range requests {
		m := &members[number]
		m.number, m.response = number, response{header: http.Header{}}
		m.exchange = g.server.Router.Begin(ctx, &m.response, request, &g.server.create)
		var alone route.Endpoint
		prepare := func(_ http.ResponseWriter, r *http.Request) (err error) {
			m.creation, alone, err = g.server.API.PrepareTransfer(r, g.results)
			return err
		}
		switch err := route.RecoverPanic(prepare, nil, m.exchange.Request); {
		case err != nil:
			m.aborted = m.exchange.End(err)
			g.add(m)
		case alone != nil:
			g.answerAlone(m, alone)
		default:
			inserts = append(inserts, m.creation.Insert)
			g.waiting = append(g.waiting, m)
		}
	}
	g.server.Transfers.Enqueue(inserts...)
}

// finish waits for all responses and writes them once they are there.
func (g *group) finish(ctx context.Context) {
	for ended := ctx.Done(); g.left > 0; {
		g.write()
		select {
		case m := <-g.answered:
			g.add(m)
		case r := <-g.results:
			g.inserted(r)
		case <-ended:
			ended = nil
			for len(g.results) > 0 {
				g.inserted(<-g.results)
			}
			for len(g.waiting) > 0 {
				g.inserted(g.server.Transfers.Abandon(g.waiting[0].creation.Insert, ctx.Err()))
			}
		}
	}
	g.write()
}

// inserted answers the member whose insert has a result. A result that comes after the member was answered means nothing.
func (g *group) inserted(r intents.Result) {
	n := slices.IndexFunc(g.waiting, func(m *member) bool { return m.creation.Insert == r.Insert })
	if n < 0 {
		return
	}
	m := g.waiting[n]
	g.waiting = slices.Delete(g.waiting, n, n+1)
	answer := g.server.API.FinishTransfer(m.creation, r)
	if r.IsDuplicate() || m.creation.Asks() { // it reads the database, or asks a node
		g.answerAlone(m, answer)
		return
	}
	m.answer(answer)
	g.add(m)
}

// answerAlone answers a member that nobody waits for.
func (g *group) answerAlone(m *member, e route.Endpoint) {
	go func() {
		m.answer(e)
		g.answered <- m
	}()
}

func (m *member) answer(e route.Endpoint) { m.aborted = m.exchange.Serve(e) }

// add adds a response to those that are to be written.
func (g *group) add(m *member) {
	g.left--
	if m.aborted {
		g.broken = true
		return
	}
	g.frames.Bytes = wire.AppendFrame(g.frames.Bytes, m.number, m.response.message.Bytes)
	m.response.message.Release()
}

// write writes the responses that are there at once, unless others are about to join them.
func (g *group) write() {
	if len(g.frames.Bytes) == 0 {
		return
	}
	last := g.left == 0 && !g.broken
	if g.left > 0 {
		// Who writes the rows runs first, so that the other responses of the same commit join this write.
		runtime.Gosched()
		runtime.Gosched()
		if len(g.results)+len(g.answered) > 0 {
			return
		}
	}
	if !g.started {
		g.started = true
		g.to.Header().Set("Content-Type", "application/octet-stream")
		if last {
			g.to.Header().Set("Content-Length", strconv.Itoa(len(g.frames.Bytes)))
		}
	}
	_, err := g.to.Write(g.frames.Bytes)
	if err == nil && !last {
		err = http.NewResponseController(g.to).Flush()
	}
	g.broken = g.broken || err != nil
	g.frames.Bytes = g.frames.Bytes[:0]
}
