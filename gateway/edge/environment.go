package edge

import (
	"bytes"
	"mime"
	"strings"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

const idempotencyKeyHeader = "Idempotency-Key"

// checkEnvironment rejects a body of POST /v2/transfers that names a chain of another environment than the key's. Chains that are
// unknown to the gateway pass, because core repeats the check.
func (e *Edge) checkEnvironment(x *exchange) *reply {
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
		return nil // core rejects every query here, and that error precedes the environment's
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
