package edge

import (
	"bytes"
	"mime"
	"strings"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

const idempotencyKeyHeader = "Idempotency-Key"

// checkTransfer rejects a body of POST /v2/transfers that breaks the grammar or names a chain of another environment than the key's. A
// body that has a quote alone names no chain, and core has the quote.
func (e *Edge) checkTransfer(x *exchange) *reply {
	if refusal := checkBody(x, wire.MaxTransferRequestBytes, transferTooLarge); refusal != nil {
		return refusal
	}
	request, issues := wire.DecodeTransferRequest(x.ctx.Request.Body())
	if len(issues) > 0 {
		return invalidRequest(issues)
	}
	if refusal := x.checkIdempotencyKey(); refusal != nil {
		return refusal
	}
	if x.hasQuery() {
		return nil // core rejects every query here, and that error precedes the environment's
	}
	x.batch = request.QuoteID == "" // a quote's use is a transaction of its own
	return e.checkEnvironment(x, request.Chains())
}

// checkQuoteRequest rejects a body of POST /v2/quotes that breaks the grammar, has not one amount, or names a chain of another
// environment than the key's.
func (e *Edge) checkQuoteRequest(x *exchange) *reply {
	if refusal := checkBody(x, wire.MaxQuoteRequestBytes, quoteRequestTooLarge); refusal != nil {
		return refusal
	}
	request, issues := wire.DecodeQuoteRequest(x.ctx.Request.Body())
	if len(issues) > 0 {
		return invalidRequest(issues)
	}
	if x.hasQuery() {
		return nil // core rejects every query here, and that error precedes those below
	}
	if refusal, ok := request.CheckAmounts(); !ok {
		return &reply{status: fasthttp.StatusBadRequest, outcome: outcomeInvalid, body: encode(refusal)}
	}
	return e.checkEnvironment(x, request.Chains())
}

func checkBody(x *exchange, most int, tooLarge *reply) *reply {
	switch {
	case len(x.ctx.Request.Body()) > most:
		return tooLarge
	case !isJSON(x.ctx.Request.Header.ContentType()):
		return notJSON
	default:
		return nil
	}
}

// checkIdempotencyKey rejects a malformed Idempotency-Key. The header may be missing.
func (x *exchange) checkIdempotencyKey() *reply {
	if key := x.ctx.Request.Header.Peek(idempotencyKeyHeader); len(key) > 0 {
		if _, ok := wire.ParseIdempotencyKey(string(key)); !ok {
			return invalidRequest([]wire.Issue{{Path: idempotencyKeyHeader, Message: wire.IdempotencyKeyRule}})
		}
	}
	return nil
}

func (x *exchange) hasQuery() bool { return bytes.IndexByte(x.target(), '?') >= 0 }

// checkEnvironment rejects chains of another environment than the key's. Chains that are unknown to the gateway pass, because core
// repeats the check.
func (e *Edge) checkEnvironment(x *exchange, chains []caip.ChainID) *reply {
	for _, chain := range chains {
		if env, ok := e.allows(x, chain); !ok {
			return chainRefused(wire.NewChainNotAllowed(chain, env, x.verdict.Environment()))
		}
	}
	return nil
}

// allows reports whether the request's key may use the chain, and the chain's environment if it may not.
func (e *Edge) allows(x *exchange, chain caip.ChainID) (env network.Environment, ok bool) {
	env, known := e.chains.Environment(chain)
	return env, !known || env == x.verdict.Environment()
}

func chainRefused(body wire.ChainNotAllowed) *reply {
	return &reply{status: fasthttp.StatusForbidden, outcome: outcomeChainRefused, body: encode(body)}
}

func invalidRequest(issues []wire.Issue) *reply {
	return &reply{
		status:  fasthttp.StatusBadRequest,
		outcome: outcomeInvalid,
		body:    encode(wire.NewInvalidRequest(issues)),
	}
}

// isJSON accepts application/json, without parameters or with charset=utf-8.
func isJSON(contentType []byte) bool {
	if string(contentType) == contentTypeJSON {
		return true
	}
	media, parameters, err := mime.ParseMediaType(string(contentType))
	if err != nil || media != contentTypeJSON {
		return false
	}
	charset, given := parameters["charset"]
	return len(parameters) == 0 || len(parameters) == 1 && given && strings.EqualFold(charset, "utf-8")
}
