package edge

import (
	"bytes"
	"errors"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/fair"
	"intents.internal/pkg/tracing"
)

const (
	// longListShare divides the bound of long lists into the bound of one account. listShare divides it into the bound of lists
	// of any length that one account may have in flight at core.
	longListShare, listShare = 24, 4
)

// streamLimiter bounds the lists, in total and by account. lists counts lists from the request to core until they are written,
// longLists those that hold a connection to core until the client has read them.
type streamLimiter struct{ lists, longLists *fair.Slots[string] }

func newStreamLimiter(most int, registry prometheus.Registerer) streamLimiter {
	l := streamLimiter{
		lists:     fair.New[string](0, fair.AtMost((most+listShare-1)/listShare)),
		longLists: fair.New[string](most, fair.AtMost((most+longListShare-1)/longListShare)),
	}
	factory := promauto.With(registry)
	gauge := func(name, help string, read func() int) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(read()) })
	}
	gauge("intents_gateway_long_answers", "Long lists that clients are reading. Near intents_gateway_long_answers_limit, new ones are about to be refused.", l.longLists.Used)
	gauge("intents_gateway_long_answers_limit", "Long lists that clients may be reading at once: three quarters of GATEWAY_CORE_MAX_CONNS.", l.longLists.Max)
	return l
}

// acquireList counts a list for the account. An account at its bound of long lists may request only pages, because core would
// produce a complete list in vain.
func (l *streamLimiter) acquireList(account string, page bool) *reply {
	if !page && l.longLists.IsOwnerAtMax(account) || l.lists.TryAcquire(account) != fair.Granted {
		return accountOverloaded
	}
	return nil
}

// forwardList forwards a request for a list. The list is counted until its response is written: fasthttp closes the body in any
// case, which releases it.
func (e *Edge) forwardList(x *exchange, target []byte) (refusal *reply) {
	account := x.verdict.AccountID()
	page := x.route != transfers || isPage(target) // core bounds every other list
	if refusal := e.streams.acquireList(account, page); refusal != nil {
		return refusal
	}
	release := func() { e.streams.lists.Release(account) }
	bodyReleases := false
	defer func() {
		if !bodyReleases {
			release()
		}
	}()
	if refusal := e.sendToCore(x, target); refusal != nil {
		return refusal
	}
	answer := &x.ctx.Response
	if stream := x.response.Stream; stream != nil && x.ctx.IsHead() {
		stream.Reject() // fasthttp would end a body of unknown length with a line break although it sends none
	} else if stream != nil {
		if refusal := e.streamList(x, stream, release); refusal != nil {
			return refusal
		}
	} else if len(answer.Body()) > smallBody {
		whole := answer.SwapBody(nil)
		setWholeBody(x.ctx, whole, func() {
			release()
			e.upstream.Recycle(whole)
		})
	}
	bodyReleases = answer.IsBodyStream()
	x.writeHeader()
	return nil
}

// streamList sets a streamed response for the client, within the bounds.
func (e *Edge) streamList(x *exchange, stream *upstream.Stream, release func()) *reply {
	account := x.verdict.AccountID()
	switch e.streams.longLists.TryAcquire(account) {
	case fair.AtMax:
		stream.Reject()
		return overloaded
	case fair.OwnerAtMax:
		stream.Reject()
		return accountOverloaded
	case fair.Granted:
	}
	body := &streamedList{Stream: stream, span: x.span, release: func() {
		e.streams.longLists.Release(account)
		release()
	}}
	x.span.AddEvent(tracing.ResponseStarted)
	x.ctx.Response.SetBodyStream(body, stream.Length())
	return nil
}

// isPage reports whether the query has a limit.
func isPage(target []byte) bool {
	_, query, _ := bytes.Cut(target, []byte("?"))
	return bytes.HasPrefix(query, []byte("limit=")) || bytes.Contains(query, []byte("&limit="))
}

// streamedList is the body of a list that streams.
type streamedList struct {
	*upstream.Stream
	span    trace.Span
	release func()
}

// slowReader is the error.type of a response that the client did not read in time.
const slowReader = "slow_reader"

// CloseWithError gets the error of the write, nil for none.
func (l *streamedList) CloseWithError(err error) error {
	switch {
	case err == nil, l.Broken(): // core failed, and the span has its error
	case errors.Is(err, os.ErrDeadlineExceeded):
		tracing.Fail(l.span, slowReader)
	default:
		tracing.Fail(l.span, outcomeClientGone.String())
	}
	_ = l.Close() // always nil
	l.span.End()
	l.release()
	return nil
}

var _, _ fasthttp.ReadCloserWithError = (*wholeBody)(nil), (*streamedList)(nil)
