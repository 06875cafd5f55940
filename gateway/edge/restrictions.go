package edge

import (
	"github.com/valyala/fasthttp"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/wire"
)

// checkRestrictions rejects a client outside the networks of its key, and a request that needs a scope which the key lacks. An
// unknown path or method needs no scope.
func checkRestrictions(x *exchange) *reply {
	if !x.verdict.AllowsFrom(x.clientIP) {
		return networkRefused(x.clientIP.String())
	}
	return checkScope(x)
}

func checkScope(x *exchange) *reply {
	if needed := x.route.scope(x.method()); !x.verdict.Has(needed) {
		return scopeRefused[needed]
	}
	return nil
}

// networkRefused names the client's address, so that the owner of the key can correct its networks. It does not name the
// networks, which stay private.
func networkRefused(address string) *reply {
	return &reply{
		status:  fasthttp.StatusForbidden,
		outcome: outcomeNetworkRefused,
		body: encode(wire.Error{
			Code:    wire.NetworkNotAllowed,
			Message: "This API key may not be used from your network. Add the address in details.address to the key's networks, or use another key.",
			Details: wire.NetworkDetails{Address: address},
		}),
	}
}

// scopeRefused holds the replies by the scope that a request needs.
var scopeRefused = map[apikey.Scopes]*reply{
	apikey.IntentsRead:  lacksScope(apikey.IntentsRead),
	apikey.IntentsWrite: lacksScope(apikey.IntentsWrite),
	apikey.Webhooks:     lacksScope(apikey.Webhooks),
}

func lacksScope(needed apikey.Scopes) *reply {
	return &reply{
		status:  fasthttp.StatusForbidden,
		outcome: outcomeScopeRefused,
		body: encode(wire.Error{
			Code:    wire.InsufficientScope,
			Message: "This API key lacks the scope in details.scope. Add it to the key's scopes, or use another key.",
			Details: wire.ScopeDetails{Scope: needed.Names()[0]},
		}),
	}
}
