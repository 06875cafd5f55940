package edge

import (
	"bytes"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// access is what a route asks of a request before anything else.
type access int

const (
	// keyed routes want an API key and spend its rate limit.
	keyed access = iota
	// open routes want nothing.
	open
	// session routes are core's own affair: it reads the browser's session.
	session
)

// action is what is done with a request that may pass.
type action int

const (
	refuse action = iota
	forwardAsIs
	forwardTransfer
	forwardOpenAPI
	tellHealth
)

// route is one row of the table. Pattern is its label in logs and metrics.
type route struct {
	pattern string
	access  access
	actions map[string]action
	// elsewise is the reply to a method the route does not have.
	elsewise *reply
	// number is the route's place in the metrics.
	number int
}

const (
	get  = fasthttp.MethodGet
	head = fasthttp.MethodHead
	post = fasthttp.MethodPost
)

// openAPITarget is where core keeps the one document that both open paths answer with.
var openAPITarget = []byte("/openapi.json")

var (
	health  = newRoute("/health", open, map[string]action{get: tellHealth, head: tellHealth})
	openAPI = newRoute("/openapi.json", open, map[string]action{get: forwardOpenAPI, head: forwardOpenAPI})

	tokens      = newRoute("/v2/tokens", keyed, map[string]action{get: forwardAsIs})
	chains      = newRoute("/v2/chains", keyed, map[string]action{get: forwardAsIs})
	transfers   = newRoute("/v2/transfers", keyed, map[string]action{get: forwardAsIs, post: forwardTransfer})
	transfer    = newRoute("/v2/transfers/{id}", keyed, map[string]action{get: forwardAsIs})
	transaction = newRoute("/v2/transfers/{id}/transaction", keyed, map[string]action{post: forwardAsIs})
	cancel      = newRoute("/v2/transfers/{id}/cancel", keyed, map[string]action{post: forwardAsIs})
	events      = newRoute("/v2/events", keyed, map[string]action{get: forwardAsIs})

	auth    = newRoute("/auth/*", session, map[string]action{get: forwardAsIs, head: forwardAsIs, post: forwardAsIs})
	console = newRoute("/console/*", session, map[string]action{get: forwardAsIs, head: forwardAsIs, post: forwardAsIs})
	docs    = newRoute("/docs/*", session, map[string]action{get: forwardAsIs, head: forwardAsIs})

	// keyedElse and openElse are the paths nobody has.
	keyedElse = newRoute("/v2/*", keyed, nil)
	openElse  = newRoute("other", open, nil)

	// unread stands for a request that could not be read as far as its path.
	unread = newRoute("unread", open, nil)
)

var routes = []*route{
	health, openAPI, tokens, chains, transfers, transfer, transaction, cancel, events, auth, console, docs, keyedElse,
	openElse, unread,
}

func init() {
	for number, r := range routes {
		r.number = number
	}
}

func newRoute(pattern string, a access, actions map[string]action) *route {
	r := &route{pattern: pattern, access: a, actions: actions, elsewise: notFound}
	var methods []string
	for _, method := range []string{get, head, post} {
		if _, known := actions[method]; known {
			methods = append(methods, method)
		}
	}
	if len(methods) > 0 {
		r.elsewise = methodNotAllowed(strings.Join(methods, ", "))
	}
	return r
}

// exact has the paths without a variable part.
var exact = map[string]*route{
	"/health":          health,
	"/v2/health":       health,
	"/openapi.json":    openAPI,
	"/v2/openapi.json": openAPI,
	"/v2/tokens":       tokens,
	"/v2/chains":       chains,
	"/v2/transfers":    transfers,
	"/v2/events":       events,
	"/console":         console,
	"/docs":            docs,
}

// match finds the row of a path by comparing its bytes: nothing is decoded, folded or cleaned, and what is matched here
// is what core gets. It always finds one.
func match(path []byte) *route {
	if r, found := exact[string(path)]; found {
		return r
	}
	if rest, below := bytes.CutPrefix(path, []byte("/v2/transfers/")); below {
		return matchTransfer(rest)
	}
	switch {
	case bytes.HasPrefix(path, []byte("/v2")):
		return keyedElse
	case bytes.HasPrefix(path, []byte("/auth/")):
		return auth
	case bytes.HasPrefix(path, []byte("/console/")):
		return console
	case bytes.HasPrefix(path, []byte("/docs/")):
		return docs
	default:
		return openElse
	}
}

func matchTransfer(rest []byte) *route {
	id, below, nested := bytes.Cut(rest, []byte("/"))
	switch {
	case len(id) == 0:
		return keyedElse
	case !nested:
		return transfer
	case string(below) == "transaction":
		return transaction
	case string(below) == "cancel":
		return cancel
	default:
		return keyedElse
	}
}

// action is what is done for the method, refuse for one the route does not have.
func (r *route) action(method []byte) action { return r.actions[string(method)] }

// wantsKey reports whether the request must bear a key. The open paths below /v2 are open to their own methods only.
func (r *route) wantsKey(path, method []byte) bool {
	if r.access == open && r.action(method) == refuse {
		return bytes.HasPrefix(path, []byte("/v2"))
	}
	return r.access == keyed
}

// streams reports whether the answer may be long. Only writes and single records are surely short.
func (r *route) streams(method []byte) bool {
	return r != transfer && string(method) != post && r.action(method) != refuse && r.action(method) != tellHealth
}

// methods are those this server understands, whether or not a route has them.
var methods = []string{
	get, head, post, fasthttp.MethodPut, fasthttp.MethodPatch, fasthttp.MethodDelete, fasthttp.MethodOptions,
}

func knownMethod(method []byte) bool { return slices.Contains(methods, string(method)) }
