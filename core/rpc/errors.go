package rpc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The kinds of failure, for errors.Is.
var (
	// ErrRange means that the range of blocks or the number of logs is over the node's limit: ask for fewer blocks.
	ErrRange = errors.New("over the node's limit of blocks or results")
	// ErrRate means that the node, or the limit configured for it, rejects more calls for now.
	ErrRate = errors.New("over the rate limit")
	// ErrMissing means that the node does not have the block or its state: it lags, or it has pruned it.
	ErrMissing = errors.New("the node does not have the block or its state")
	// ErrReverted means that the contract reverted the simulated call; Error.Data is what it returned.
	ErrReverted = errors.New("reverted")
	// ErrTooLarge means that the response is over the size that the node sends, or that this client reads.
	ErrTooLarge = errors.New("over the size of a response")
	// ErrTransport means that no JSON-RPC response arrived: no connection, a timeout, an HTTP status.
	ErrTransport = errors.New("no answer")
	// ErrMalformed means that the response does not match the request, contradicts itself, or is what no chain can have.
	ErrMalformed = errors.New("malformed answer")
	// ErrWrongChain means that the node serves another chain and is not used.
	ErrWrongChain = errors.New("wrong chain")
)

// errBatch means that a node rejects so many calls in one request.
var errBatch = errors.New("over the node's limit of calls in a request")

// ErrNoProvider is returned for a chain that has no providers.
var ErrNoProvider = errors.New("the chain has no providers")

// maxMessage bounds the bytes of a node's message that are kept.
const maxMessage = 200

// Error is an error from a node. Its kind is ErrRange, ErrRate, ErrMissing, ErrReverted, ErrTooLarge, errBatch or none.
type Error struct {
	Code    int64
	Message string
	// Data is the data of a reverted call, nil if the node does not return it.
	Data []byte
	kind error
}

func (e *Error) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// Unwrap is the kind.
func (e *Error) Unwrap() error { return e.kind }

// failure is an error of one kind whose text is safe to show; the cause is kept only for errors.Is.
type failure struct {
	kind       error
	text       string
	cause      error
	retryAfter time.Duration
}

func (f *failure) Error() string { return fmt.Sprintf("%s: %s", f.kind, f.text) }

func (f *failure) Unwrap() []error { return []error{f.kind, f.cause} }

// The spellings of nodes and providers, all in lower case. Sources: go-ethereum, reth, Erigon, Nethermind, Besu and anvil; Alchemy,
// Infura, QuickNode, Ankr, dRPC, publicnode, Cloudflare, Tenderly, Moonbeam, Base and Chainstack.
var (
	batchWords = regexp.MustCompile(`batch(es)?( (request|call|size|length|limit|item)s?)*[^.]{0,40}(too (large|big|long|many)|exceed|limit|maximum|not (allowed|supported|permitted)|disabled)|` +
		`batch of more than|too many (requests|calls|items) in (the |a )?batch|(max(imum)?|exceed(s|ed)?|limit of)[^.]{0,40} batch`)
	sizeWords    = regexp.MustCompile(`response( size)?( is)? (too (large|big)|exceed)`)
	missingWords = regexp.MustCompile(`header not found|missing trie node|unknown block|block[^.]{0,60} not found|pruned|` +
		`blockoutofrange|block height is \d+ but requested|beyond (the )?(current )?head|after last accepted block|invalid block range|` +
		`requested data not available|state[^.]{0,40} (not |un)available|no state available|proof window|haven't been fully indexed|indexing is in progress`)
	rateWords = regexp.MustCompile(`rate.?limit|too many requests|(requests?|calls?|units|queries) per second|/second|/sec\b|` +
		`request limit|request count|throughput|compute units|capacity|quota|max usage|usage limit|credits|limit exceeded|exceeded (its|the|your) [^.]{0,40}limit`)
	// strongRateWords mean a rate limit even if the text mentions ranges.
	strongRateWords = regexp.MustCompile(`rate.?limit|too many requests|per second|/second|compute units`)
	rangeWords      = regexp.MustCompile(`block range|blocks? (span|distance|count)|range (is )?too|range limit|ranges over|requested range|too wide|` +
		`range \d+ (exceeds|is bigger)|limited to a|limited to [\d,k -]+ ?(blocks?|range|logs|results)|max(imum)?( allowed)?( number of)?( block)?( requested)? ?(range|blocks|results|logs)|` +
		`more than [\d,]+ (results|logs|blocks)|too many (results|logs|blocks)|(response|result|log)s?( response)?( set)?( is)? (size|too (large|big)|limit)|` +
		`matched by query|at most [\d,]+ blocks|narrow|query timeout|timed? ?out`)
)

// notOfRange are the codes of JSON-RPC for requests that no smaller range makes valid.
var notOfRange = []int64{-32700, -32601}

// errorKind classifies a node's error by its code and text. Only eth_getLogs has ranges, and an error of it that is not known is one of
// its range: providers spell their limits in many ways, and one block alone shows whether it is something else.
func errorKind(c *call, code int64, text string) error {
	method := c.method
	text = strings.ToLower(text)
	simulated := method == methodCall || method == methodEstimateGas || method == methodSimulate
	switch {
	case simulated && (code == 3 || strings.Contains(text, "revert")):
		return ErrReverted
	case simulated && strings.Contains(text, "gas") && !strongRateWords.MatchString(text):
		return nil // a gas limit is not a rate limit
	case batchWords.MatchString(text) && !strongRateWords.MatchString(strings.ReplaceAll(text, "too many requests in", "")):
		return errBatch
	case code == 4444 || code == -39001 || missingWords.MatchString(text):
		return ErrMissing
	case method == methodLogs && (rangeWords.MatchString(text) || code == -32614) && !strongRateWords.MatchString(text):
		return ErrRange
	case sizeWords.MatchString(text):
		return ErrTooLarge
	case code == 429 || code == -32005 || code == -32007 || code == -32029 || code == -32097 || rateWords.MatchString(text):
		return ErrRate
	case c.logBlocks > 1 && !slices.Contains(notOfRange, code):
		return ErrRange
	default:
		return nil
	}
}

// reason is the label of an error in metrics, of a closed set.
func reason(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, ErrRange):
		return "range"
	case errors.Is(err, ErrRate):
		return "rate"
	case errors.Is(err, ErrMissing):
		return "missing"
	case errors.Is(err, ErrReverted):
		return "reverted"
	case errors.Is(err, ErrTooLarge):
		return "size"
	case errors.Is(err, errBatch):
		return "batch"
	case errors.Is(err, ErrMalformed):
		return "malformed"
	case errors.Is(err, ErrTransport):
		return "transport"
	default:
		return "node"
	}
}
