package rpctest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Faults are what is wrong with a node; the zero value is a good one.
type Faults struct {
	// Lag hides the last blocks and what is in them.
	Lag int
	// Balanced hides the lag from "latest", as a load balancer does that sends each request to another node.
	Balanced bool
	// LagError answers eth_getLogs beyond the node's head with error -32602, as anvil does, instead of no logs.
	LagError bool
	// EmptyLogs answers eth_getLogs with none.
	EmptyLogs bool
	// RangeLimit and ResultLimit bound eth_getLogs; 0 means no bound.
	RangeLimit  uint64
	ResultLimit int
	// MissingState answers for blocks below the head as a node that has pruned their state.
	MissingState bool
	// StatesKept answers so for blocks further below the head than that; 0 means that it keeps all.
	StatesKept uint64
	// PrunedBelow is the first block that the node keeps (EIP-4444).
	PrunedBelow uint64
	// ChainID is served instead of the chain's; 0 means the chain's.
	ChainID uint64
	// Unknown transactions have no receipt and are not found.
	Unknown map[common.Hash]bool
	// Receipts change the receipts of transactions.
	Receipts map[common.Hash]func(*Receipt)
	// Garbled transactions have receipts and contents that cannot be decoded.
	Garbled map[common.Hash]bool
	// Errors answer all calls of a method.
	Errors map[string]Error
	// Tags are depths of safe and finalized instead of the chain's.
	Tags map[string]uint64
	// Lie changes the results of calls; nil means that they are true.
	Lie Lie
	// LagOf hides that many blocks more from a call of a method; nil means none.
	LagOf func(method string) int
	// Silent requests are never answered: those with a call of a method for which it is true; nil means none. By Transport their time runs
	// out at once.
	Silent func(method string) bool
	// BatchLimit bounds the calls of a request; 0 means no bound. More are answered with BatchStatus and no body or, where that is 0,
	// with one JSON-RPC error.
	BatchLimit, BatchStatus int

	// Requested is told the body of each request before it is answered; nil means nobody.
	Requested func(body []byte)

	// Down refuses connections.
	Down bool
	// Status is answered instead of 200 with an empty body; RetryAfter goes with it.
	Status     int
	RetryAfter time.Duration
	// Delay comes before each answer, and that of Delays before those to requests that name a method or a hash.
	Delay  time.Duration
	Delays map[string]time.Duration
	// Answer replaces the whole body.
	Answer []byte
	// Truncate cuts the body in half.
	Truncate bool
}

// Error is a JSON-RPC error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

func (e Error) Error() string { return e.Message }

// Node serves a chain over HTTP. It is safe for concurrent use.
type Node struct {
	host   string
	server *httptest.Server

	mu       sync.Mutex
	chain    *Chain
	faults   Faults
	requests int
	calls    map[string]int
}

var nodes atomic.Uint64

// NewNode is a node without a socket, for Transport.
func NewNode(chain *Chain) *Node {
	return &Node{host: fmt.Sprintf("node-%d.test", nodes.Add(1)), chain: chain, calls: map[string]int{}}
}

// URL is the node's address: of its socket after Listen, else one that only Transport knows.
func (n *Node) URL() string {
	if n.server != nil {
		return n.server.URL
	}
	return "http://" + n.host
}

// Listen serves the node on a free port until Close.
func (n *Node) Listen() *Node {
	n.server = httptest.NewServer(n)
	return n
}

// Close ends what Listen began.
func (n *Node) Close() { n.server.Close() }

// Serve is a node that listens until the test ends, of which it needs Cleanup alone.
func Serve(test interface{ Cleanup(clean func()) }, chain *Chain) *Node {
	n := NewNode(chain).Listen()
	test.Cleanup(n.Close)
	return n
}

// Transport reaches nodes without sockets, also inside testing/synctest.
func Transport(nodes ...*Node) http.RoundTripper {
	byHost := transport{}
	for _, n := range nodes {
		byHost[n.host] = n
	}
	return byHost
}

type transport map[string]*Node

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	node := t[r.URL.Host]
	if node == nil || node.Faults().Down {
		return nil, syscall.ECONNREFUSED
	}
	recorder := httptest.NewRecorder()
	if !node.serve(recorder, r) {
		return nil, context.DeadlineExceeded
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return recorder.Result(), nil
}

// Faults are those that are set.
func (n *Node) Faults() Faults {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults
}

// Set changes the faults. Maps are replaced, not written to.
func (n *Node) Set(change func(*Faults)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.faults)
}

// Follow has the node look at another chain, such as a fork.
func (n *Node) Follow(chain *Chain) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.chain = chain
}

// Requests is the number of HTTP requests.
func (n *Node) Requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.requests
}

// Calls counts the calls of each method.
func (n *Node) Calls() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.calls)
}

// ServeHTTP answers a request.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !n.serve(w, r) {
		<-r.Context().Done()
	}
}

// serve answers a request; answered is false for one on which the node is silent.
func (n *Node) serve(w http.ResponseWriter, r *http.Request) (answered bool) {
	n.mu.Lock()
	n.requests++
	faults, chain := n.faults, n.chain
	n.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if faults.Requested != nil {
		faults.Requested(body)
	}
	delay := faults.Delay
	for name, d := range faults.Delays {
		if bytes.Contains(body, []byte(name)) {
			delay = max(delay, d)
		}
	}
	if err != nil || !wait(r.Context(), delay) {
		return true
	}
	if faults.Down {
		panic(http.ErrAbortHandler)
	}
	if faults.Status != 0 {
		if faults.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(faults.RetryAfter.Seconds())))
		}
		w.WriteHeader(faults.Status)
		return true
	}
	answer, tooMany := n.answer(view{Chain: chain, faults: faults}, body)
	if answer == nil {
		return false
	}
	if tooMany && faults.BatchStatus != 0 {
		w.WriteHeader(faults.BatchStatus)
		return true
	}
	if faults.Answer != nil {
		answer = faults.Answer
	}
	if faults.Truncate {
		answer = answer[:len(answer)/2]
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
	return true
}

func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type request struct {
	ID     jsontext.Value   `json:"id"`
	Method string           `json:"method"`
	Params []jsontext.Value `json:"params"`
}

type response struct {
	Version string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Result  any            `json:"result,omitzero"`
	Error   *Error         `json:"error,omitzero"`
}

var null = jsontext.Value("null")

// answer returns the response to a request, nil where the node is silent; tooMany is set where it rejects so many calls.
func (n *Node) answer(v view, body []byte) (text []byte, tooMany bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var requests []request
	batch := bytes.HasPrefix(bytes.TrimSpace(body), []byte("["))
	var one request
	var err error
	if batch {
		err = json.Unmarshal(body, &requests)
	} else {
		err = json.Unmarshal(body, &one)
		requests = []request{one}
	}
	tooMany = v.faults.BatchLimit > 0 && len(requests) > v.faults.BatchLimit
	if tooMany {
		requests = nil
	}
	responses := make([]response, len(requests))
	for i, r := range requests {
		if v.faults.Silent != nil && v.faults.Silent(r.Method) {
			return nil, false
		}
		responses[i] = n.call(v, r)
	}
	var answer any = responses
	switch {
	case err != nil:
		answer = response{Version: "2.0", ID: null, Error: &Error{Code: -32700, Message: "parse error"}}
	case tooMany:
		answer = response{Version: "2.0", ID: null, Error: &Error{Code: 31, Message: fmt.Sprintf("Batch of more than %d requests are not allowed on free tier", v.faults.BatchLimit)}}
	case !batch:
		answer = responses[0]
	}
	text, err = json.Marshal(answer)
	if err != nil {
		panic(fmt.Errorf("encode an answer: %w", err))
	}
	return text, tooMany
}

func (n *Node) call(v view, r request) response {
	n.mu.Lock()
	n.calls[r.Method]++
	n.mu.Unlock()
	answer := response{Version: "2.0", ID: r.ID}
	if v.faults.LagOf != nil {
		v.faults.Lag += v.faults.LagOf(r.Method)
	}
	result, err := v.call(r.Method, r.Params)
	if err == nil {
		result = v.faults.lied(r.Method, result)
	}
	if err == nil && result == nil {
		result = null
	}
	if err != nil {
		answer.Error = toError(err)
		return answer
	}
	answer.Result = result
	return answer
}
