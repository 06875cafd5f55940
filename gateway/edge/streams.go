package edge

import (
	"bytes"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/forward"
	"intents.internal/pkg/tracing"
)

const (
	// longShare is the part of the long answers, one in so many, that one account may have, and listShare that which bounds
	// the lists core may be making for it at once: those of many small requests while core is slow, too.
	longShare, listShare = 24, 4
	// smallAnswer is up to how long an answer is not worth counting until it has been written.
	smallAnswer = 16 << 10
)

// streamLimiter bounds what lists cost, in all and for each account: lists counts those under way, from before core is asked
// until they have been written, and long those among them that hold a connection to core until the client has read them.
type streamLimiter struct{ lists, long *quota[string] }

func newStreamLimiter(most int, registry prometheus.Registerer) streamLimiter {
	l := streamLimiter{
		lists: newQuota[string](0, (most+listShare-1)/listShare),
		long:  newQuota[string](most, (most+longShare-1)/longShare),
	}
	factory := promauto.With(registry)
	gauge := func(name, help string, read func() int) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(read()) })
	}
	gauge("intents_gateway_long_answers", "Long lists that clients are reading. Near intents_gateway_long_answers_limit, new ones are about to be refused.", l.long.count)
	gauge("intents_gateway_long_answers_limit", "Long lists that clients may be reading at once: three quarters of GATEWAY_CORE_MAX_CONNS.", l.long.limit)
	return l
}

// acquireList counts a list as under way for the account. All of a list, not a page of it, is refused to an account that has
// all the long answers it may have, since core would make it in vain.
func (l *streamLimiter) acquireList(account string, page bool) *reply {
	if !page && l.long.exhausted(account) || l.lists.acquire(account) != none {
		return accountOverloaded
	}
	return nil
}

// passList forwards a request for a list. What the list takes of the account's share is given back when its answer has been
// written: by the answer's body, which fasthttp closes in any case.
func (e *Edge) passList(x *exchange, target []byte) (refusal *reply) {
	account := x.verdict.AccountID
	if refusal := e.streams.acquireList(account, isPage(target)); refusal != nil {
		return refusal
	}
	release := func() { e.streams.lists.release(account) }
	written := false // by a body that releases
	defer func() {
		if !written {
			release()
		}
	}()
	stream, refusal := e.send(x, target)
	answer := &x.ctx.Response
	switch {
	case refusal != nil:
		return refusal
	case stream != nil:
		if refusal := e.answerLong(x, stream, release); refusal != nil {
			return refusal
		}
	case len(answer.Body()) <= smallAnswer:
		return nil
	default:
		whole := answer.SwapBody(nil)
		answer.SetBodyStream(&wholeList{Reader: bytes.NewReader(whole), release: release}, len(whole))
	}
	written = true
	return nil
}

// answerLong makes a long answer the client's, if there is a place for it.
func (e *Edge) answerLong(x *exchange, stream *forward.Stream, release func()) *reply {
	account := x.verdict.AccountID
	switch e.streams.long.acquire(account) {
	case inAll:
		stream.Reject()
		return overloaded
	case ofOwner:
		stream.Reject()
		return accountOverloaded
	case none:
	}
	body := &longList{Stream: stream, span: x.span, release: func() {
		e.streams.long.release(account)
		release()
	}}
	x.span.AddEvent(tracing.ResponseStarted)
	stream.Send(&x.ctx.Response, body)
	return nil
}

// isPage reports whether the list that is asked for is bounded by a limit.
func isPage(target []byte) bool {
	_, query, _ := bytes.Cut(target, []byte("?"))
	return bytes.HasPrefix(query, []byte("limit=")) || bytes.Contains(query, []byte("&limit="))
}

// wholeList is the body of a list that is there as a whole.
type wholeList struct {
	*bytes.Reader
	release func()
}

// CloseWithError is called by fasthttp once the body has been written or never will be.
func (l *wholeList) CloseWithError(error) error {
	l.release()
	return nil
}

// longList is the body of a list that streams.
type longList struct {
	*forward.Stream
	span    trace.Span
	release func()
}

// slowReader is why a client did not get all of an answer that it took too long to read.
const slowReader = "slow_reader"

// CloseWithError is the same; the error is what went wrong while the body was written, nil for nothing.
func (l *longList) CloseWithError(err error) error {
	switch {
	case err == nil, l.Broken(): // by core, which the span has been told
	case isTimeout(err):
		tracing.Fail(l.span, slowReader)
	default:
		tracing.Fail(l.span, outcomeClientGone.String())
	}
	_ = l.Close() // which does not fail
	l.span.End()
	l.release()
	return nil
}

var _, _ fasthttp.ReadCloserWithError = (*wholeList)(nil), (*longList)(nil)
