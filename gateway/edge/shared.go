package edge

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/catalog"
	"intents.internal/gateway/usage"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// serveShared responds with the catalog's copy of core's response. If there is none it forwards the request, and core responds to
// an invalid query or with its own error.
func (e *Edge) serveShared(x *exchange) *reply {
	target, shared := e.sharedDocument(x)
	if !shared {
		return e.forward(x, target)
	}
	header := &x.ctx.Request.Header
	answer, waited := e.catalog.Lookup(target, header.Peek(fasthttp.HeaderAcceptEncoding), x.now)
	if waited {
		x.now = time.Now()
	}
	if answer == nil {
		return e.forward(x, target)
	}
	x.usageKind, x.outcome = usage.Accepted, outcomeOK
	if known := header.Peek(fasthttp.HeaderIfNoneMatch); len(known) > 0 && wire.MatchesETag(string(known), answer.ETag) {
		x.ctx.Response.SetStatusCode(fasthttp.StatusNotModified)
		setHeader(&x.ctx.Response, answer.Header)
		return nil
	}
	setHeader(&x.ctx.Response, answer.Header)
	setHeader(&x.ctx.Response, answer.Representation)
	if len(answer.Body) <= smallBody {
		x.ctx.Response.SetBodyRaw(answer.Body)
	} else {
		setWholeBody(x.ctx, answer.Body, func() {})
	}
	return nil
}

// sharedDocument returns the path and query of the document at core, and whether all clients share it. Documents without a key
// ignore the query. The token lists of each known chain are shared too.
func (e *Edge) sharedDocument(x *exchange) (target []byte, shared bool) {
	target = x.target()
	_, query, queried := bytes.Cut(target, []byte("?"))
	switch {
	case !x.route.access.keyed(), !queried:
		return x.route.document, true
	case x.route != tokens:
		return target, false
	}
	id, only := bytes.CutPrefix(query, []byte("chain-id="))
	if !only {
		return target, false
	}
	chain, err := caip.ParseChainID(string(id))
	if err != nil {
		return target, false
	}
	_, shared = e.chains.Environment(chain)
	return target, shared
}

func setHeader(to *fasthttp.Response, fields []catalog.Field) {
	for _, field := range fields {
		to.Header.SetCanonical(field.Name, field.Value)
	}
}
