package edge

import (
	"bytes"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/wire"
)

// access is what a route requires before all other checks.
type access int

const (
	// anyKey routes require an API key of any scope and use its rate limit.
	anyKey access = iota
	// intentsKey routes require the scope intents:read for a GET or HEAD, and intents:write for every other method.
	intentsKey
	// intentsReadKey and intentsWriteKey routes require the scope intents:read or intents:write, whatever the method.
	intentsReadKey
	intentsWriteKey
	// webhooksKey routes require the scope webhooks.
	webhooksKey
	// open routes require nothing.
	open
	// session routes are authenticated by core from the browser's session.
	session
)

// keyed reports whether the routes require an API key.
func (a access) keyed() bool { return a < open }

// action is how a request that passed the checks is answered.
type action int

const (
	refuse action = iota
	forwardAsIs
	forwardTransfer
	forwardTransferBatch
	forwardQuoteRequest
	serveShared
	healthCheck
)

// route is one row of the route table; pattern is its label in logs and metrics.
type route struct {
	pattern string
	access  access
	actions actions
	// document is the path of core's response that all clients share, empty for other routes. If the route is keyed, only the
	// response without a query is shared.
	document []byte
	// fallback is the reply to a method that the route lacks.
	fallback *reply
	// honorsIdempotencyKey is set if core executes a POST with the same Idempotency-Key only once, so that it may be retried.
	honorsIdempotencyKey bool
	// tokenMethod is the method that client tokens may use, empty for none; preflight is the reply to a browser that asks for it.
	tokenMethod string
	preflight   *reply
	// number is the route's index in the metrics.
	number int
}

// actions are a route's actions by method. HEAD is answered as GET is, without the body (RFC 9110 section 9.3.2).
type actions struct{ get, post, patch, remove action }

func (a *actions) of(method []byte) action {
	switch string(method) {
	case get, head:
		return a.get
	case post:
		return a.post
	case patch:
		return a.patch
	case remove:
		return a.remove
	default:
		return refuse
	}
}

const (
	get    = fasthttp.MethodGet
	head   = fasthttp.MethodHead
	post   = fasthttp.MethodPost
	patch  = fasthttp.MethodPatch
	remove = fasthttp.MethodDelete
)

// routedMethods are the methods of all routes, in the order of an Allow header.
var routedMethods = []string{get, head, post, patch, remove}

var (
	health  = newRoute("/health", open, actions{get: healthCheck})
	index   = newRoute("/", open, actions{get: forwardAsIs})
	openAPI = newDocument("/openapi.json", open, actions{get: serveShared})
	docs    = newDocument("/docs", session, actions{get: serveShared})
	docPage = newRoute("/docs/*", session, actions{}) // of the paths that core does not have, see docsRoutes
	llms    = newDocument("/llms.txt", open, actions{get: serveShared})

	tokens           = newDocument("/v2/tokens", anyKey, actions{get: serveShared})
	chains           = newDocument("/v2/chains", anyKey, actions{get: serveShared})
	keyUsage         = newRoute("/v2/usage", anyKey, actions{get: forwardAsIs})
	transfers        = newRoute("/v2/transfers", intentsKey, actions{get: forwardAsIs, post: forwardTransfer}).withIdempotencyKey()
	transfer         = newRoute("/v2/transfers/{id}", intentsKey, actions{get: forwardAsIs, patch: forwardAsIs}).withClientToken(get)
	transaction      = newRoute("/v2/transfers/{id}/transaction", intentsKey, actions{post: forwardAsIs}).withClientToken(post)
	clientToken      = newRoute("/v2/transfers/{id}/client-token", intentsReadKey, actions{post: forwardAsIs})
	refund           = newRoute("/v2/transfers/{id}/refund", intentsWriteKey, actions{get: forwardAsIs})
	preflight        = newRoute("/v2/transfers/{id}/preflight", intentsKey, actions{get: forwardAsIs}).withClientToken(get)
	signature        = newRoute("/v2/transfers/{id}/signature", intentsKey, actions{post: forwardAsIs})
	relay            = newRoute("/v2/transfers/{id}/relay", intentsWriteKey, actions{get: forwardAsIs})
	transferEvents   = newRoute("/v2/transfers/{id}/events", intentsKey, actions{get: forwardAsIs})
	cancel           = newRoute("/v2/transfers/{id}/cancel", intentsKey, actions{post: forwardAsIs})
	simulate         = newRoute("/v2/transfers/{id}/simulate", intentsKey, actions{post: forwardAsIs})
	newBatch         = newRoute("/v2/transfers/batch", intentsKey, actions{post: forwardTransferBatch}).withIdempotencyKey()
	batch            = newRoute("/v2/batches/{id}", intentsKey, actions{get: forwardAsIs})
	batchCalls       = newRoute("/v2/batches/{id}/calls", intentsKey, actions{get: forwardAsIs})
	batchTransaction = newRoute("/v2/batches/{id}/transaction", intentsKey, actions{post: forwardAsIs})
	events           = newRoute("/v2/events", intentsKey, actions{get: forwardAsIs})
	event            = newRoute("/v2/events/{id}", intentsKey, actions{get: forwardAsIs})
	quotes           = newRoute("/v2/quotes", intentsReadKey, actions{post: forwardQuoteRequest})
	quote            = newRoute("/v2/quotes/{id}", intentsReadKey, actions{get: forwardAsIs})
	origins          = newRoute("/v2/origins", intentsKey, actions{get: forwardAsIs, patch: forwardAsIs})

	webhooks        = newRoute("/v2/webhooks", webhooksKey, actions{get: forwardAsIs, post: forwardAsIs}).withIdempotencyKey()
	webhook         = newRoute("/v2/webhooks/{id}", webhooksKey, actions{get: forwardAsIs, patch: forwardAsIs, remove: forwardAsIs})
	webhookSecret   = newRoute("/v2/webhooks/{id}/rotate-secret", webhooksKey, actions{post: forwardAsIs})
	webhookTest     = newRoute("/v2/webhooks/{id}/test", webhooksKey, actions{post: forwardAsIs})
	webhookReplay   = newRoute("/v2/webhooks/{id}/replay", webhooksKey, actions{post: forwardAsIs})
	deliveries      = newRoute("/v2/webhooks/{id}/deliveries", webhooksKey, actions{get: forwardAsIs})
	delivery        = newRoute("/v2/webhooks/{id}/deliveries/{eventId}", webhooksKey, actions{get: forwardAsIs})
	deliveryAttempt = newRoute("/v2/webhooks/{id}/deliveries/{eventId}/retry", webhooksKey, actions{post: forwardAsIs})

	auth    = newRoute("/auth/*", session, actions{}) // of the paths that core does not have, see sessionRoutes
	console = newRoute("/console/*", session, actions{get: forwardAsIs, post: forwardAsIs})

	// unknownKeyedPath and unknownPath match all other paths.
	unknownKeyedPath = newRoute("/v2/*", anyKey, actions{})
	unknownPath      = newRoute("other", open, actions{})

	// unreadPath is the route of a request whose path could not be parsed.
	unreadPath = newRoute("unread", open, actions{})
)

var routes = []*route{
	health, index, openAPI, docs, docPage, llms, tokens, chains, keyUsage, transfers, transfer, transaction, clientToken, refund, preflight, signature,
	relay, cancel, simulate, transferEvents, newBatch, batch, batchCalls, batchTransaction, events, event, quotes, quote, origins,
	webhooks, webhook, webhookSecret, webhookTest, webhookReplay, deliveries, delivery, deliveryAttempt,
	auth, console, unknownKeyedPath, unknownPath, unreadPath,
}

// sessionRoutes are the paths below /auth that core has. All count as auth in logs and metrics.
var sessionRoutes = map[string]*route{}

// docsRoutes are the pages below /docs that core has. All count as docPage in logs and metrics.
var docsRoutes = map[string]*route{}

func init() {
	for number, r := range routes {
		r.number = number
	}
	for _, path := range wire.DocsPages {
		r := newRoute(docPage.pattern, docPage.access, actions{get: serveShared})
		r.document, r.number = []byte(path), docPage.number
		docsRoutes[path] = r
	}
	for _, path := range wire.Paths {
		if !strings.HasPrefix(path.Pattern, "/auth/") {
			continue
		}
		var does actions
		if slices.Contains(path.Methods, get) {
			does.get = forwardAsIs
		}
		if slices.Contains(path.Methods, post) {
			does.post = forwardAsIs
		}
		r := newRoute(auth.pattern, session, does)
		r.number = auth.number
		sessionRoutes[path.Pattern] = r
	}
}

func newRoute(pattern string, who access, does actions) *route {
	r := &route{pattern: pattern, access: who, actions: does, fallback: notFound}
	var methods []string
	for _, method := range routedMethods {
		if does.of([]byte(method)) != refuse {
			methods = append(methods, method)
		}
	}
	if len(methods) > 0 {
		r.fallback = methodNotAllowed(strings.Join(methods, ", "))
	}
	return r
}

func (r *route) withIdempotencyKey() *route {
	r.honorsIdempotencyKey = true
	return r
}

// withClientToken lets client tokens use one method of a route of one transfer.
func (r *route) withClientToken(method string) *route {
	r.tokenMethod, r.preflight = method, newPreflight(method)
	return r
}

// takesToken reports whether client tokens may use the method.
func (r *route) takesToken(method []byte) bool {
	return r.tokenMethod != "" && (string(method) == r.tokenMethod || r.tokenMethod == get && string(method) == head)
}

// newDocument returns the route of a document that all clients share, at the same path as in core.
func newDocument(path string, who access, does actions) *route {
	r := newRoute(path, who, does)
	r.document = []byte(path)
	return r
}

// transfersPrefix is the prefix of the paths of one transfer.
const transfersPrefix = "/v2/transfers/"

// match returns the route of a path. It compares bytes: nothing is decoded or cleaned, and core gets the same bytes.
func match(path []byte) *route {
	switch string(path) {
	case "/":
		return index
	case "/health", "/v2/health":
		return health
	case "/openapi.json", "/v2/openapi.json":
		return openAPI
	case "/v2/tokens":
		return tokens
	case "/v2/chains":
		return chains
	case "/v2/usage":
		return keyUsage
	case "/v2/transfers":
		return transfers
	case "/v2/transfers/batch":
		return newBatch
	case "/v2/events":
		return events
	case "/v2/quotes":
		return quotes
	case "/v2/origins":
		return origins
	case "/v2/webhooks":
		return webhooks
	case "/console":
		return console
	case "/docs":
		return docs
	case "/llms.txt":
		return llms
	}
	if rest, below := bytes.CutPrefix(path, []byte(transfersPrefix)); below {
		return matchTransfer(rest)
	}
	if rest, below := bytes.CutPrefix(path, []byte("/v2/batches/")); below {
		return matchBatch(rest)
	}
	if id, below := bytes.CutPrefix(path, []byte("/v2/events/")); below && len(id) > 0 && bytes.IndexByte(id, '/') < 0 {
		return event
	}
	if id, below := bytes.CutPrefix(path, []byte("/v2/quotes/")); below && len(id) > 0 && bytes.IndexByte(id, '/') < 0 {
		return quote
	}
	if rest, below := bytes.CutPrefix(path, []byte("/v2/webhooks/")); below {
		return matchWebhook(rest)
	}
	switch {
	case bytes.HasPrefix(path, []byte("/v2")):
		return unknownKeyedPath
	case bytes.HasPrefix(path, []byte("/auth/")):
		return matchIn(sessionRoutes, path, auth)
	case bytes.HasPrefix(path, []byte("/docs/")):
		return matchIn(docsRoutes, path, docPage)
	case bytes.HasPrefix(path, []byte("/console/")):
		return console
	default:
		return unknownPath
	}
}

// matchIn returns the route of a path among those of core, or the fallback of all others below the same path.
func matchIn(routes map[string]*route, path []byte, fallback *route) *route {
	if r := routes[string(path)]; r != nil {
		return r
	}
	return fallback
}

func matchTransfer(rest []byte) *route {
	id, below, nested := bytes.Cut(rest, []byte("/"))
	switch {
	case len(id) == 0:
		return unknownKeyedPath
	case !nested:
		return transfer
	case string(below) == "transaction":
		return transaction
	case string(below) == "client-token":
		return clientToken
	case string(below) == "refund":
		return refund
	case string(below) == "preflight":
		return preflight
	case string(below) == "signature":
		return signature
	case string(below) == "relay":
		return relay
	case string(below) == "events":
		return transferEvents
	case string(below) == "cancel":
		return cancel
	case string(below) == "simulate":
		return simulate
	default:
		return unknownKeyedPath
	}
}

func matchBatch(rest []byte) *route {
	id, below, nested := bytes.Cut(rest, []byte("/"))
	switch {
	case len(id) == 0:
		return unknownKeyedPath
	case !nested:
		return batch
	case string(below) == "calls":
		return batchCalls
	case string(below) == "transaction":
		return batchTransaction
	default:
		return unknownKeyedPath
	}
}

func matchWebhook(rest []byte) *route {
	id, below, nested := bytes.Cut(rest, []byte("/"))
	switch {
	case len(id) == 0:
		return unknownKeyedPath
	case !nested:
		return webhook
	case string(below) == "rotate-secret":
		return webhookSecret
	case string(below) == "test":
		return webhookTest
	case string(below) == "replay":
		return webhookReplay
	case string(below) == "deliveries":
		return deliveries
	}
	below, isDelivery := bytes.CutPrefix(below, []byte("deliveries/"))
	event, does, nested := bytes.Cut(below, []byte("/"))
	switch {
	case !isDelivery || len(event) == 0:
		return unknownKeyedPath
	case !nested:
		return delivery
	case string(does) == "retry":
		return deliveryAttempt
	default:
		return unknownKeyedPath
	}
}

// action returns the method's action, refuse for a method that the route lacks.
func (r *route) action(method []byte) action { return r.actions.of(method) }

// wantsKey reports whether the request needs a key. Open paths below /v2 need none for their own methods only.
func (r *route) wantsKey(path, method []byte) bool {
	if r.access == open && r.action(method) == refuse {
		return bytes.HasPrefix(path, []byte("/v2"))
	}
	return r.access.keyed()
}

// scope returns the scope that a key needs for the method, zero for a method that the route lacks.
func (r *route) scope(method []byte) apikey.Scopes {
	switch {
	case r.action(method) == refuse:
		return 0
	case r.access == intentsReadKey, r.access == intentsKey && isRead(method):
		return apikey.IntentsRead
	case r.access == intentsKey, r.access == intentsWriteKey:
		return apikey.IntentsWrite
	case r.access == webhooksKey:
		return apikey.Webhooks
	default:
		return 0
	}
}

// streams reports whether the response may be long. Responses to writes, single records and webhooks are never long, but for the records
// of a new batch.
func (r *route) streams(method []byte) bool {
	switch r {
	case newBatch:
		return r.action(method) != refuse
	case index, transfer, refund, preflight, relay, event, quote, origins, webhooks, webhook, delivery:
		return false
	}
	return isRead(method) && r.action(method) != refuse && r.action(method) != healthCheck
}

// lists reports whether the cost of the response grows with the account's intents.
func (r *route) lists(method []byte) bool {
	return (r == transfers || r == events || r == deliveries) && isRead(method)
}

// methods are the methods that this server recognizes, whether or not a route has them.
var methods = []string{
	get, head, post, fasthttp.MethodPut, patch, remove, fasthttp.MethodOptions,
}

// isRead reports whether the method is one of those that every route with a GET has.
func isRead(method []byte) bool { return string(method) == get || string(method) == head }

func isKnownMethod(method []byte) bool { return slices.Contains(methods, string(method)) }
