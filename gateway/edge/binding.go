package edge

import (
	"bytes"
	"mime"
	"strings"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

const idempotencyKeyHeader = "Idempotency-Key"

// bind holds the request to the environment of its key: every chain named in the body of POST /v2/transfers must belong
// to it. Chains the gateway does not know are left to core, which checks all of it again.
func (e *Edge) bind(x *exchange) *reply {
	body := x.ctx.Request.Body()
	if len(body) > wire.MaxTransferRequestBytes {
		return bodyTooLarge
	}
	if !isJSON(x.ctx.Request.Header.ContentType()) {
		return notJSON
	}
	request, issues := wire.DecodeTransferRequest(body)
	if len(issues) > 0 {
		return invalidRequest(issues)
	}
	if key := x.ctx.Request.Header.Peek(idempotencyKeyHeader); len(key) > 0 {
		if _, ok := wire.ParseIdempotencyKey(string(key)); !ok {
			return invalidRequest([]wire.Issue{{Path: idempotencyKeyHeader, Message: wire.IdempotencyKeyRule}})
		}
	}
	if bytes.IndexByte(x.target(), '?') >= 0 {
		return nil // core refuses every parameter here, which a client is to be told before its key's environment
	}
	for _, chain := range request.Chains() {
		env, known := e.chains.Environment(chain)
		if known && env != x.verdict.Environment() {
			return &reply{
				status:  fasthttp.StatusForbidden,
				outcome: outcomeChainRefused,
				body:    encode(wire.NewChainNotAllowed(chain, env, x.verdict.Environment())),
			}
		}
	}
	return nil
}

func invalidRequest(issues []wire.Issue) *reply {
	return &reply{
		status:  fasthttp.StatusBadRequest,
		outcome: outcomeInvalid,
		body:    encode(wire.NewInvalidRequest(issues)),
	}
}

// isJSON accepts application/json, with no parameter but charset=utf-8.
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
