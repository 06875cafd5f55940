package edge

import (
	"time"

	"intents.internal/gateway/usage"
	"intents.internal/pkg/fair"
	"intents.internal/pkg/wire"
)

const (
	// quoteTimeout is the least time that core gets for a request for quotes, so that core reports the silence of providers itself.
	quoteTimeout = wire.MaxQuoteWait + 2*time.Second
	// accountQuoteShare and keyQuoteShare divide the bound of requests for quotes into those of one account and of one key.
	accountQuoteShare, keyQuoteShare = 8, 16
)

// quoteLimiter bounds the requests for quotes in flight, because each may hold a connection to core for wire.MaxQuoteWait: in total, by
// account and by key.
type quoteLimiter struct{ accounts, keys *fair.Slots[string] }

func newQuoteLimiter(most int) quoteLimiter {
	return quoteLimiter{
		accounts: fair.New[string](most, fair.AtMost((most+accountQuoteShare-1)/accountQuoteShare)),
		keys:     fair.New[string](0, fair.AtMost((most+keyQuoteShare-1)/keyQuoteShare)),
	}
}

// acquire counts a request for quotes, or returns the reply to one over the bounds. A request that is counted must be released.
func (l quoteLimiter) acquire(account, key string) *reply {
	if l.keys.TryAcquire(key) != fair.Granted {
		return keyQuotes
	}
	result := l.accounts.TryAcquire(account)
	if result == fair.Granted {
		return nil
	}
	l.keys.Release(key)
	if result == fair.OwnerAtMax {
		return accountQuotes
	}
	return allQuotes
}

func (l quoteLimiter) release(account, key string) {
	l.accounts.Release(account)
	l.keys.Release(key)
}

// forwardQuoteRequest checks a request for quotes and forwards it within the bounds. Once sent it is not sent again: it would ask
// every provider a second time, and their own limits are shared by all accounts.
func (e *Edge) forwardQuoteRequest(x *exchange) *reply {
	if refusal := e.checkQuoteRequest(x); refusal != nil {
		return refusal
	}
	account, key := x.verdict.AccountID(), x.verdict.KeyID()
	if refusal := e.quotes.acquire(account, key); refusal != nil {
		if refusal != allQuotes {
			x.usageKind = usage.Limited
		}
		return refusal
	}
	defer e.quotes.release(account, key)
	return e.forward(x, x.target())
}
