package solver

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
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

// quoteRequest is the request of POST /api/v1/quotes (openintentsframework/oif-specs), without what this solver does not need. Addresses
// are interoperable addresses (EIP-7930).
type quoteRequest struct {
	Intent struct {
		IntentType    string        `json:"intentType"`
		Inputs        []quoteInput  `json:"inputs"`
		Outputs       []quoteOutput `json:"outputs"`
		SwapType      string        `json:"swapType"`
		MinValidUntil int64         `json:"minValidUntil"`
	} `json:"intent"`
}

type quoteInput struct {
	User   string `json:"user"`
	Asset  string `json:"asset"`
	Amount string `json:"amount,omitempty"`
}

type quoteOutput struct {
	Receiver string `json:"receiver"`
	Asset    string `json:"asset"`
	Amount   string `json:"amount,omitempty"`
}

type quotePreview struct {
	Inputs  []quoteInput  `json:"inputs"`
	Outputs []quoteOutput `json:"outputs"`
}

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
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.log.Debug("a quote was not delivered", slog.Any("error", err))
	}
}

// quote prices one input or one output. The error is a quoteError.
func (s *solver) quote(body io.Reader, now time.Time) (quoteAnswer, error) {
	var r quoteRequest
	decoder := json.NewDecoder(body)
	if err := decoder.Decode(&r); err != nil {
		return quoteAnswer{}, refuse(http.StatusBadRequest, "INVALID_REQUEST", "The body is no request for quotes: %v", err)
	}
	if r.Intent.IntentType != "oif-swap" || len(r.Intent.Inputs) != 1 || len(r.Intent.Outputs) != 1 {
		return quoteAnswer{}, refuse(http.StatusBadRequest, "INVALID_REQUEST", "A quote is of one input and one output of an oif-swap.")
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
	var amount *big.Int
	var known bool
	switch r.Intent.SwapType {
	case "", "exact-input":
		if amount, err = parseAmount(in.Amount); err != nil {
			return quoteAnswer{}, err
		}
		amount, known = s.prices.output(from, to, amount)
		out.Amount = decimal(amount)
	case "exact-output":
		if amount, err = parseAmount(out.Amount); err != nil {
			return quoteAnswer{}, err
		}
		amount, known = s.prices.input(from, to, amount)
		in.Amount = decimal(amount)
	default:
		return quoteAnswer{}, refuse(http.StatusBadRequest, "INVALID_REQUEST", "The swapType %q is unknown.", r.Intent.SwapType)
	}
	switch {
	case !known:
		return quoteAnswer{}, refuse(http.StatusUnprocessableEntity, "UNSUPPORTED_ASSET", "This solver has no price of a token.")
	case amount.Sign() == 0 || amount.BitLen() > 256:
		return quoteAnswer{}, refuse(http.StatusUnprocessableEntity, "INSUFFICIENT_LIQUIDITY", "The amount is too small or too large.")
	}
	return quoteAnswer{
		QuoteID: fmt.Sprintf("%x", now.UnixNano()), Provider: "local solver", ETA: secondsToFill,
		ValidUntil: min(max(now.Add(quoteValidity).Unix(), r.Intent.MinValidUntil), now.Add(maxQuoteValidity).Unix()),
		Preview:    quotePreview{Inputs: []quoteInput{in}, Outputs: []quoteOutput{out}}, FailureHandling: "refund-claim",
	}, nil
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
	if len(text) <= 78 && strings.Trim(text, "0123456789") == "" {
		amount, ok = amount.SetString(text, 10)
	}
	if !ok || amount.Sign() == 0 || amount.BitLen() > 256 {
		return nil, refuse(http.StatusBadRequest, "INVALID_REQUEST", "The fixed amount must be decimal digits, 1 to 2^256-1.")
	}
	return amount, nil
}

// decimal returns no text for no amount.
func decimal(amount *big.Int) string {
	if amount == nil {
		return ""
	}
	return amount.String()
}

var errInteroperable = errors.New("is no interoperable address of an EVM chain")

// parseInteroperable decodes an interoperable address of the chain type eip155 (EIP-7930): version 1, the chain type 0, the length of the
// chain's number and the number, 20 and the address.
func parseInteroperable(text string) (chain uint64, address common.Address, err error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil || len(raw) < 6 || raw[0] != 0 || raw[1] != 1 || raw[2] != 0 || raw[3] != 0 {
		return 0, address, errInteroperable
	}
	length := int(raw[4])
	rest := raw[5:]
	if length == 0 || length > 8 || len(rest) != length+1+common.AddressLength || rest[length] != common.AddressLength {
		return 0, address, errInteroperable
	}
	return new(big.Int).SetBytes(rest[:length]).Uint64(), common.BytesToAddress(rest[length+1:]), nil
}
