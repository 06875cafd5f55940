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
	answerShared
	tellHealth
)

// route is one row of the table. Pattern is its label in logs and metrics.
type route struct {
	pattern string
	access  access
	actions actions
	// document is where core has the answer that every client gets alike, empty for the routes that have none. A keyed
	// route's is that of a request without a query.
	document []byte
	// elsewise is the reply to a method the route does not have.
	elsewise *reply
	// honorsIdempotencyKey says that core carries a POST with an Idempotency-Key out once, so that one may be sent again.
	honorsIdempotencyKey bool
	// number is the route's place in the metrics.
	number int
}

// actions are a route's, for the methods that any route has.
type actions struct{ get, head, post action }

func (a *actions) of(method []byte) action {
	switch string(method) {
	case get:
		return a.get
	case head:
		return a.head
	case post:
		return a.post
	default:
		return refuse
	}
}

const (
	get  = fasthttp.MethodGet
	head = fasthttp.MethodHead
	post = fasthttp.MethodPost
)

var (
	health  = newRoute("/health", open, actions{get: tellHealth, head: tellHealth})
	openAPI = newDocument("/openapi.json", open, actions{get: answerShared, head: answerShared})
	docs    = newDocument("/docs", session, actions{get: answerShared, head: answerShared})
	style   = newDocument("/docs/style.css", session, actions{get: answerShared, head: answerShared})

	tokens      = newDocument("/v2/tokens", keyed, actions{get: answerShared})
	chains      = newDocument("/v2/chains", keyed, actions{get: answerShared})
	transfers   = newRoute("/v2/transfers", keyed, actions{get: forwardAsIs, post: forwardTransfer}).withIdempotencyKey()
	transfer    = newRoute("/v2/transfers/{id}", keyed, actions{get: forwardAsIs})
	transaction = newRoute("/v2/transfers/{id}/transaction", keyed, actions{post: forwardAsIs})
	cancel      = newRoute("/v2/transfers/{id}/cancel", keyed, actions{post: forwardAsIs})
	events      = newRoute("/v2/events", keyed, actions{get: forwardAsIs})

	auth    = newRoute("/auth/*", session, actions{get: forwardAsIs, head: forwardAsIs, post: forwardAsIs})
	console = newRoute("/console/*", session, actions{get: forwardAsIs, head: forwardAsIs, post: forwardAsIs})

	// keyedElse and openElse are the paths nobody has.
	keyedElse = newRoute("/v2/*", keyed, actions{})
	openElse  = newRoute("other", open, actions{})

	// unread stands for a request that could not be read as far as its path.
	unread = newRoute("unread", open, actions{})
)

var routes = []*route{
	health, openAPI, docs, style, tokens, chains, transfers, transfer, transaction, cancel, events, auth, console, keyedElse,
	openElse, unread,
}

func init() {
	for number, r := range routes {
		r.number = number
	}
}

func newRoute(pattern string, who access, does actions) *route {
	r := &route{pattern: pattern, access: who, actions: does, elsewise: notFound}
	var methods []string
	for _, method := range []string{get, head, post} {
		if does.of([]byte(method)) != refuse {
			methods = append(methods, method)
		}
	}
	if len(methods) > 0 {
		r.elsewise = methodNotAllowed(strings.Join(methods, ", "))
	}
	return r
}

func (r *route) withIdempotencyKey() *route {
	r.honorsIdempotencyKey = true
	return r
}

// newDocument makes the row of an answer that every client gets alike, which core has at the same path.
func newDocument(path string, who access, does actions) *route {
	r := newRoute(path, who, does)
	r.document = []byte(path)
	return r
}

// match finds the row of a path by comparing its bytes: nothing is decoded, folded or cleaned, and what is matched here
// is what core gets. It always finds one.
func match(path []byte) *route {
	switch string(path) {
	case "/health", "/v2/health":
		return health
	case "/openapi.json", "/v2/openapi.json":
		return openAPI
	case "/v2/tokens":
		return tokens
	case "/v2/chains":
		return chains
	case "/v2/transfers":
		return transfers
	case "/v2/events":
		return events
	case "/console":
		return console
	case "/docs":
		return docs
	case "/docs/style.css":
		return style
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
func (r *route) action(method []byte) action { return r.actions.of(method) }

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

// lists reports whether the answer costs core as much as the account has intents.
func (r *route) lists(method []byte) bool {
	return (r == transfers || r == events) && string(method) == get
}

// methods are those this server understands, whether or not a route has them.
var methods = []string{
	get, head, post, fasthttp.MethodPut, fasthttp.MethodPatch, fasthttp.MethodDelete, fasthttp.MethodOptions,
}

func knownMethod(method []byte) bool { return slices.Contains(methods, string(method)) }
