package solver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/go-json-experiment/json"
)

const (
	// quoteValidity is how long a quote holds at least.
	quoteValidity = time.Minute
	// maxQuoteValidity bounds what a client may ask for.
	maxQuoteValidity = time.Hour
	// maxQuoteBytes bounds the body of a request.
	maxQuoteBytes = 64 << 10
	// secondsToFill is about how long a fill takes on local chains.
	secondsToFill = 5
	quoteTimeout  = 5 * time.Second
)

// quoteRequest is the request of POST /api/v1/quotes (openintentsframework/oif-specs at 8de1978). Addresses are interoperable addresses
// (EIP-7930). Members of the type any are preferences, which change no quote of this solver.
type quoteRequest struct {
	User   any `json:"user"`
	Intent struct {
		IntentType       string        `json:"intentType"`
		Inputs           []quoteInput  `json:"inputs"`
		Outputs          []quoteOutput `json:"outputs"`
		SwapType         string        `json:"swapType"`
		MinValidUntil    int64         `json:"minValidUntil"`
		Preference       any           `json:"preference"`
		OriginSubmission any           `json:"originSubmission"`
		FailureHandling  any           `json:"failureHandling"`
		PartialFill      any           `json:"partialFill"`
		Metadata         any           `json:"metadata"`
	} `json:"intent"`
	SupportedTypes []string `json:"supportedTypes"`
}

type quoteInput struct {
	User   string `json:"user"`
	Asset  string `json:"asset"`
	Amount string `json:"amount,omitempty"`
	Lock   any    `json:"lock,omitempty"`
}

type quoteOutput struct {
	Receiver string `json:"receiver"`
	Asset    string `json:"asset"`
	Amount   string `json:"amount,omitempty"`
	Calldata string `json:"calldata,omitempty"`
}

type quotePreview struct {
	Inputs  []quoteInput  `json:"inputs"`
	Outputs []quoteOutput `json:"outputs"`
}

// quoteAnswer is a quote without the order that the specification requires.
type quoteAnswer struct {
	QuoteID     string       `json:"quoteId"`
	Provider    string       `json:"provider"`
	ValidUntil  int64        `json:"validUntil"`
	ETA         int          `json:"eta"`
	Preview     quotePreview `json:"preview"`
	PartialFill bool         `json:"partialFill"`
	// FailureHandling is how the input comes back from an order that is not filled: the sender, or anybody, calls refund.
	FailureHandling string `json:"failureHandling"`
}

// quoteError is an error of the API: a status, one of its error types, and a sentence.
type quoteError struct {
	status        int
	kind, message string
}

func (e *quoteError) Error() string { return e.message }

func refuse(status int, kind, form string, args ...any) error {
	return &quoteError{status, kind, fmt.Sprintf(form, args...)}
}

// serveQuotes answers requests for quotes until ctx ends.
func (s *solver) serveQuotes(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/quotes", s.handleQuotes)
	server := &http.Server{Handler: mux, ReadTimeout: quoteTimeout, WriteTimeout: quoteTimeout, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *solver) handleQuotes(w http.ResponseWriter, r *http.Request) {
	answer, err := s.quote(http.MaxBytesReader(w, r.Body, maxQuoteBytes), time.Now())
	status, body := http.StatusOK, any(map[string]any{"quotes": []quoteAnswer{answer}})
	if refused, ok := errors.AsType[*quoteError](err); ok {
		status, body = refused.status, map[string]string{"error": refused.kind, "message": refused.message}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.MarshalWrite(w, body); err != nil {
		s.log.Debug("a quote was not delivered", slog.Any("error", err))
	}
}

// quote prices one input or one output. The error is a quoteError.
func (s *solver) quote(body io.Reader, now time.Time) (quoteAnswer, error) {
	var r quoteRequest
	if err := json.UnmarshalRead(body, &r, json.RejectUnknownMembers(true)); err != nil {
		return quoteAnswer{}, refuse(http.StatusBadRequest, "INVALID_REQUEST", "The body is no request for quotes: %v", err)
	}
	if fault := r.fault(now); fault != "" {
		return quoteAnswer{}, refuse(http.StatusBadRequest, "INVALID_REQUEST", "%s", fault)
	}
	in, out := r.Intent.Inputs[0], r.Intent.Outputs[0]
	from, err := s.asset(in.User, in.Asset)
	if err != nil {
		return quoteAnswer{}, err
	}
	to, err := s.asset(out.Receiver, out.Asset)
	if err != nil {
		return quoteAnswer{}, err
	}
	if in.Amount, out.Amount, err = s.amounts(from, to, in.Amount, out.Amount); err != nil {
		return quoteAnswer{}, err
	}
	return quoteAnswer{
		QuoteID: rand.Text(), Provider: "local solver", ETA: secondsToFill,
		ValidUntil: max(now.Add(quoteValidity).Unix(), r.Intent.MinValidUntil),
		Preview:    quotePreview{Inputs: []quoteInput{in}, Outputs: []quoteOutput{out}}, FailureHandling: "refund-claim",
	}, nil
}

// fault returns what this solver does not serve of a request, in a sentence, or nothing.
func (r quoteRequest) fault(now time.Time) string {
	if r.Intent.IntentType != "oif-swap" || len(r.Intent.Inputs) != 1 || len(r.Intent.Outputs) != 1 {
		return "A quote is of one input and one output of an oif-swap."
	}
	in, out := r.Intent.Inputs[0], r.Intent.Outputs[0]
	given, open := in.Amount, out.Amount
	switch r.Intent.SwapType {
	case "", "exact-input":
	case "exact-output":
		given, open = open, given
	default:
		return fmt.Sprintf("The swapType %q is unknown.", r.Intent.SwapType)
	}
	switch {
	case given == "" || open != "":
		return "An exact-input has the input's amount alone, an exact-output the output's."
	case in.Lock != nil:
		return "An input with a lock is not served."
	case out.Calldata != "" && out.Calldata != "0x":
		return "An output with calldata is not served."
	case r.Intent.MinValidUntil > now.Add(maxQuoteValidity).Unix():
		return "A quote is valid for an hour at most: minValidUntil is later."
	case r.SupportedTypes != nil && !slices.Contains(r.SupportedTypes, "oif-user-open-v0") && !slices.Contains(r.SupportedTypes, "oif-escrow-v0"):
		return "The supportedTypes have neither oif-user-open-v0 nor oif-escrow-v0."
	}
	return ""
}

// amounts returns both amounts, of which one is empty before.
func (s *solver) amounts(from, to common.Address, in, out string) (pays, gets string, err error) {
	given, err := parseAmount(cmp.Or(in, out))
	if err != nil {
		return "", "", err
	}
	input, output, known := given, given, false
	if in != "" {
		output, known = s.prices.output(from, to, given)
	} else {
		input, known = s.prices.input(from, to, given)
	}
	switch {
	case !known && s.FailsUnsupported:
		return "", "", refuse(http.StatusInternalServerError, "INTERNAL_ERROR", "Token not supported")
	case !known:
		return "", "", refuse(http.StatusUnprocessableEntity, "UNSUPPORTED_ASSET", "This solver has no price of a token.")
	case output.Sign() == 0 || !s.prices.affords(to, output):
		return "", "", refuse(http.StatusUnprocessableEntity, "INSUFFICIENT_LIQUIDITY", "The output is less than its smallest unit, or worth more than %d.", mostCents/100)
	}
	return input.String(), output.String(), nil
}

// asset returns the token of one side, whose account and token are on one chain of this solver.
func (s *solver) asset(account, token string) (common.Address, error) {
	chain, _, err := parseInteroperable(account)
	if err == nil {
		var tokenChain uint64
		var address common.Address
		if tokenChain, address, err = parseInteroperable(token); err == nil && tokenChain == chain {
			for _, c := range s.chains {
				if c.id.IsUint64() && c.id.Uint64() == chain {
					return address, nil
				}
			}
			return common.Address{}, refuse(http.StatusUnprocessableEntity, "UNSUPPORTED_ASSET", "This solver fills nothing on the chain %d.", chain)
		}
	}
	return common.Address{}, refuse(http.StatusBadRequest, "INVALID_REQUEST", "An account and its asset are interoperable addresses (EIP-7930) of one EVM chain.")
}

func parseAmount(text string) (*big.Int, error) {
	amount, ok := new(big.Int), false
	if len(text) <= 78 && strings.Trim(text, "0123456789") == "" && !strings.HasPrefix(text, "0") {
		amount, ok = amount.SetString(text, 10)
	}
	if !ok || amount.BitLen() > 256 {
		return nil, refuse(http.StatusBadRequest, "INVALID_REQUEST", "An amount is decimal digits without leading zeros, 1 to 2^256-1.")
	}
	return amount, nil
}

var errInteroperable = errors.New("is no interoperable address of an EVM chain")

// parseInteroperable decodes an interoperable address of the chain type eip155 (EIP-7930): version 1, the chain type 0, the length of the
// chain's number and the number without leading zeros, 20 and the address.
func parseInteroperable(text string) (chain uint64, address common.Address, err error) {
	digits, prefixed := strings.CutPrefix(text, "0x")
	raw, err := hex.DecodeString(digits)
	if err != nil || !prefixed || len(raw) < 6 || raw[0] != 0 || raw[1] != 1 || raw[2] != 0 || raw[3] != 0 {
		return 0, address, errInteroperable
	}
	length := int(raw[4])
	rest := raw[5:]
	if length == 0 || length > 8 || len(rest) != length+1+common.AddressLength || rest[0] == 0 || rest[length] != common.AddressLength {
		return 0, address, errInteroperable
	}
	return new(big.Int).SetBytes(rest[:length]).Uint64(), common.BytesToAddress(rest[length+1:]), nil
}
