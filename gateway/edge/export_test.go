package edge

import (
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/limit"
	"intents.internal/gateway/upstream"
)

// Handle is the handler without the server around it, for benchmarks.
func (e *Edge) Handle(ctx *fasthttp.RequestCtx) {
	e.handleHeader(&ctx.Request.Header)
	e.handleAt(ctx, time.Now())
}

// SetLimiter and SetUpstream replace a part before the edge serves; nil makes the handlers that use it panic.
func (e *Edge) SetLimiter(l *limit.Limiter) { e.limiter = l }

// SetUpstream is as SetLimiter.
func (e *Edge) SetUpstream(u *upstream.Client) { e.upstream = u }

// OpenConnections is how many clients are still connected to an edge that has drained. fasthttp takes one off for a
// listener that it has no more.
func (e *Edge) OpenConnections() int { return int(e.server.GetOpenConnectionsCount()) + 1 }

// TargetPasses and RouteOf are the path check and the route table, for fuzzing.
func TargetPasses(target []byte) bool { return checkTarget(target) == nil }

// RouteOf is the pattern of the route that a path has.
func RouteOf(path []byte) string { return match(path).pattern }

// ServeUnverified serves a request as if a defect of the checks had admitted it without a verdict on its key.
func (e *Edge) ServeUnverified(ctx *fasthttp.RequestCtx) {
	x := e.begin(ctx, time.Now())
	defer e.end(x)
	x.route = match(x.path())
	if refusal := e.serve(x); refusal != nil {
		x.writeReply(refusal)
	}
}

// ReadPatterns are the routes that have a GET.
func ReadPatterns() []string {
	var all []string
	for _, r := range routes {
		if r.action([]byte(get)) != refuse {
			all = append(all, r.pattern)
		}
	}
	for path, r := range sessionRoutes {
		if r.action([]byte(get)) != refuse {
			all = append(all, path)
		}
	}
	return all
}

// NeededScopes are the scopes that keyed operations need, by method and pattern, empty for none.
func NeededScopes() map[string]string {
	all := map[string]string{}
	for _, r := range routes {
		for _, method := range routedMethods {
			if r.access.keyed() && r.action([]byte(method)) != refuse {
				all[method+" "+r.pattern] = strings.Join(r.scope([]byte(method)).Names(), " ")
			}
		}
	}
	return all
}
