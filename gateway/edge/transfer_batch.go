package edge

import (
	"github.com/valyala/fasthttp"

	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/wire"
)

// forwardTransferBatch checks a batch of intents and forwards it. The batch takes as many tokens of its account as it has intents, so the
// limit follows the body: only a refusal that is certain for one token precedes it. A request that is rejected before its number of intents
// is known, or because of it, takes one.
//
// It is never sent to core together with others (Request.Batch), because it is long and core works on it longer.
func (e *Edge) forwardTransferBatch(x *exchange) *reply {
	if refusal := e.repeatRefusal(x); refusal != nil {
		return refusal
	}
	items, refusal := checkTransferBatch(x)
	most := maxTransferBatch(x.verdict.AccountLimit())
	cost := 1
	if refusal == nil && len(items) <= most {
		cost = len(items)
	}
	if limited := e.takeTokens(x, cost); limited != nil {
		return limited
	}
	if refusal == nil && !x.hasQuery() { // core rejects every query here, and that error precedes those below
		refusal = e.checkBatchEnvironment(x, items)
		if refusal == nil && len(items) > most {
			refusal = batchTooLarge(most)
		}
	}
	if refusal != nil {
		return refusal
	}
	return e.forward(x, x.target())
}

// repeatRefusal rejects a request of a key or account that has no token left, if that is known without Redis.
func (e *Edge) repeatRefusal(x *exchange) *reply {
	decision, refused := e.limiter.CachedRefusal(x.verdict.Limit(), x.verdict.AccountLimit(), &x.verdict.Refusals, x.now)
	if !refused {
		return nil
	}
	x.limit = decision
	x.setRateLimit()
	return x.limited()
}

// checkTransferBatch returns the intents of a batch, at least one, or rejects its body or its Idempotency-Key.
func checkTransferBatch(x *exchange) ([]wire.TransferRequest, *reply) {
	if refusal := checkBody(x, wire.MaxTransferBatchBytes, transferBatchTooLarge); refusal != nil {
		return nil, refusal
	}
	items, issues := wire.DecodeTransferBatch(x.ctx.Request.Body())
	if len(issues) > 0 {
		return nil, invalidRequest(issues)
	}
	if len(x.ctx.Request.Header.Peek(idempotencyKeyHeader)) == 0 {
		return nil, idempotencyKeyRequired
	}
	return items, x.checkIdempotencyKey()
}

// maxTransferBatch is how many intents a batch of an account may have: its bucket never has more tokens than its burst.
func maxTransferBatch(account tokenbucket.Bucket) int {
	if account.Rule.Rate == 0 {
		return wire.MaxTransferBatch
	}
	return min(wire.MaxTransferBatch, account.Rule.Burst)
}

// checkBatchEnvironment rejects the first intent that names a chain of another environment than the key's.
func (e *Edge) checkBatchEnvironment(x *exchange, items []wire.TransferRequest) *reply {
	for n := range items {
		for _, chain := range items[n].Chains() {
			if env, ok := e.allows(x, chain); !ok {
				body := wire.NewChainNotAllowed(chain, env, x.verdict.Environment())
				body.Details = &wire.PathDetails{Path: wire.BatchPath(n, items[n].PathOf(chain))}
				return chainRefused(body)
			}
		}
	}
	return nil
}

func batchTooLarge(most int) *reply {
	return &reply{status: fasthttp.StatusUnprocessableEntity, outcome: outcomeBatchTooLarge, body: encode(wire.NewBatchTooLarge(most))}
}
