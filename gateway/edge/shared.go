package edge

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/catalog"
	"intents.internal/gateway/usage"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// answerShared answers with the copy of core's answer that all clients read, and forwards the request where there is none:
// core answers what it has to say of such a query then, and the reason where it fails.
func (e *Edge) answerShared(x *exchange) *reply {
	target, shared := e.documentOf(x)
	if !shared {
		return e.pass(x, target)
	}
	header := &x.ctx.Request.Header
	answer, waited := e.catalog.Answer(target, header.Peek(fasthttp.HeaderAcceptEncoding), x.now)
	if waited {
		x.tick()
	}
	if answer == nil {
		return e.pass(x, target)
	}
	x.fate, x.outcome = usage.Accepted, outcomeOK
	if known := header.Peek(fasthttp.HeaderIfNoneMatch); len(known) > 0 && wire.MatchesETag(string(known), answer.ETag) {
		x.ctx.Response.SetStatusCode(fasthttp.StatusNotModified)
		writeFields(&x.ctx.Response, answer.Header)
		return nil
	}
	writeFields(&x.ctx.Response, answer.Header)
	writeFields(&x.ctx.Response, answer.Representation)
	x.ctx.Response.SetBodyRaw(answer.Body)
	return nil
}

// documentOf is the path and query that core has the answer at, and whether it is one that is shared. Documents that are open
// to anyone have one answer to every query. Of the tokens, those of each chain that there is are shared too.
func (e *Edge) documentOf(x *exchange) (target []byte, shared bool) {
	target = x.target()
	_, query, queried := bytes.Cut(target, []byte("?"))
	switch {
	case x.route.access != keyed, !queried:
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

func writeFields(to *fasthttp.Response, fields []catalog.Field) {
	for _, field := range fields {
		to.Header.SetCanonical(field.Name, field.Value)
	}
}
