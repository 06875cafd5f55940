package provider

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/quotes/quote"
	"intents.internal/pkg/caip"
)

// oif is the quote API of the Open Intents Framework (github.com/openintentsframework/oif-specs at 8de1978, POST /api/v1/quotes), which solvers
// and aggregators serve. Its addresses are interoperable addresses (EIP-7930).
type oif struct{}

type oifInput struct {
	User   string `json:"user"`
	Asset  string `json:"asset"`
	Amount string `json:"amount,omitempty"`
}

type oifOutput struct {
	Receiver string `json:"receiver"`
	Asset    string `json:"asset"`
	Amount   string `json:"amount,omitempty"`
}

type oifRequest struct {
	User           string    `json:"user"`
	Intent         oifIntent `json:"intent"`
	SupportedTypes []string  `json:"supportedTypes"`
}

type oifIntent struct {
	IntentType      string      `json:"intentType"`
	Inputs          []oifInput  `json:"inputs"`
	Outputs         []oifOutput `json:"outputs"`
	SwapType        string      `json:"swapType"`
	MinValidUntil   int64       `json:"minValidUntil"`
	Preference      string      `json:"preference"`
	FailureHandling []string    `json:"failureHandling"`
	PartialFill     bool        `json:"partialFill"`
}

// swapTypes are the words of both dialects for the kinds.
var swapTypes = map[quote.Kind]string{quote.ExactInput: "exact-input", quote.ExactOutput: "exact-output"}

func (oif) path() string { return "/api/v1/quotes" }

func (oif) encode(r Request) ([]byte, error) {
	var failures []error
	address := func(chain caip.ChainID, address string) string {
		text, err := interoperable(chain, address)
		failures = append(failures, err)
		return text
	}
	user := address(r.Source.Account.Chain, r.Source.Account.Address)
	input := oifInput{User: user, Asset: address(r.Source.Token.Chain, assetAddress(r.Source.Token))}
	output := oifOutput{
		Receiver: address(r.Destination.Account.Chain, r.Destination.Account.Address),
		Asset:    address(r.Destination.Token.Chain, assetAddress(r.Destination.Token)),
	}
	if r.Kind == quote.ExactInput {
		input.Amount = r.asked().String()
	} else {
		output.Amount = r.asked().String()
	}
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return json.Marshal(oifRequest{
		User: user,
		Intent: oifIntent{
			IntentType: "oif-swap", Inputs: []oifInput{input}, Outputs: []oifOutput{output}, SwapType: swapTypes[r.Kind],
			MinValidUntil: r.MinValidUntil.Unix(), Preference: "price", FailureHandling: []string{"refund-automatic"},
		},
		// Solvers price the escrow that a signature opens as the one that the user's own transaction opens.
		SupportedTypes: []string{userOpenOrder, escrowOrder},
	})
}

// oifQuote is one quote of an answer.
type oifQuote struct {
	QuoteID    string  `json:"quoteId"`
	ValidUntil int64   `json:"validUntil"`
	ETA        float64 `json:"eta"`
	Preview    struct {
		Inputs  sides[oifInput]  `json:"inputs"`
		Outputs sides[oifOutput] `json:"outputs"`
	} `json:"preview"`
	Order *struct {
		signedOrder
		OpenIntentTx *struct {
			To   string         `json:"to"`
			Data jsontext.Value `json:"data"`
		} `json:"openIntentTx"`
	} `json:"order"`
	// PartialFill means that the order may be filled in part, which is never asked for.
	PartialFill bool        `json:"partialFill"`
	Metadata    exclusivity `json:"metadata"`
}

// exclusivity is of a quote's metadata in both dialects: LI.FI's member, which the framework's aggregators can pass on.
type exclusivity struct {
	ExclusiveFor jsontext.Value `json:"exclusiveFor"`
}

// exclusive reports whether the member names somebody: it is neither missing, null, false nor empty.
func (e exclusivity) exclusive() bool {
	_ = e.ExclusiveFor.Compact() // it is valid
	switch string(e.ExclusiveFor) {
	case "", "null", "false", `""`, "[]", "{}":
		return false
	default:
		return true
	}
}

func (oif) decode(body []byte) ([]candidate, error) { return decodeQuotes(body, oifQuote.candidate) }

func (q oifQuote) candidate() (c candidate, err error) {
	if len(q.Preview.Inputs) != 1 || len(q.Preview.Outputs) != 1 {
		return c, errSides
	}
	in, out := q.Preview.Inputs[0], q.Preview.Outputs[0]
	c = candidate{id: q.QuoteID, validUntil: q.ValidUntil, eta: q.ETA, exclusive: q.Metadata.exclusive(), partialFill: q.PartialFill}
	if c.source, err = oifSide(in.User, in.Asset, in.Amount); err != nil {
		return c, err
	}
	if c.destination, err = oifSide(out.Receiver, out.Asset, out.Amount); err != nil {
		return c, err
	}
	if q.Order == nil || q.Order.OpenIntentTx == nil {
		if q.Order != nil {
			c.order = q.Order.offered()
		}
		return c, nil
	}
	chain, to, err := parseInteroperable(q.Order.OpenIntentTx.To)
	if err != nil {
		return c, fmt.Errorf("settler %w", err)
	}
	data, err := oifCalldata(q.Order.OpenIntentTx.Data)
	c.order = openedOrder(chain, to, data)
	return c, err
}

var errCalldata = errors.New("the calldata is no text and no list of numbers from 0 to 255")

// oifCalldata returns calldata in hexadecimal. The specification has a list of the bytes' numbers, and solvers send a text too. Without
// calldata it is empty, which opens no order.
func oifCalldata(data jsontext.Value) (text string, err error) {
	if len(data) == 0 || data.Kind() == 'n' {
		return "", nil
	}
	if data.Kind() == '"' {
		err = json.Unmarshal(data, &text)
		return text, err
	}
	var numbers []uint16 // a []byte is a text in base64
	if err := json.Unmarshal(data, &numbers); err != nil {
		return "", errCalldata
	}
	raw := make([]byte, len(numbers))
	for n, number := range numbers {
		if number > math.MaxUint8 {
			return "", errCalldata
		}
		raw[n] = byte(number)
	}
	return hex.EncodeToString(raw), nil
}

var errSides = errors.New("the quote has not one input and one output, both with an amount")

func oifSide(account, asset, amount string) (s side, err error) {
	chain, address, err := parseInteroperable(account)
	if err != nil {
		return s, fmt.Errorf("account %w", err)
	}
	tokenChain, tokenAddress, err := parseInteroperable(asset)
	if err != nil {
		return s, fmt.Errorf("asset %w", err)
	}
	if chain != tokenChain {
		return s, errors.New("account and asset are of two chains")
	}
	return side{chain: chain, account: address, token: tokenAddress, amount: amount}, nil
}

// refusal knows the error types and sentences of the framework's solver: an asset, a route or an amount that it does not serve is no fault of the
// request.
func (oif) refusal(r Request, body []byte) quote.FailureCode {
	var answer struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(body, &answer) // another body is a refusal too
	switch {
	case slices.Contains(oifNoQuote.types, answer.Error), slices.ContainsFunc(oifNoQuote.sentences, func(s string) bool { return bytes.Contains(body, []byte(s)) }):
		return quote.NoQuote
	case r.Kind == quote.ExactOutput && mentionsExactOutput(body):
		return quote.ExactOutputUnsupported
	default:
		return quote.ProviderRefused
	}
}

// oifNoQuote are the solver's refusals of what is asked for, by their types and by the sentences of those that have none of their own (oif-solver
// 926e39a).
var oifNoQuote = struct{ types, sentences []string }{
	[]string{"UNSUPPORTED_ASSET", "INSUFFICIENT_LIQUIDITY", "UNSUPPORTED_SETTLEMENT"},
	[]string{"No suitable settlement", "cannot be zero after cost adjustment"},
}

// mentionsExactOutput reports whether a refusal gives exact output as its reason. There is no code for it in either API.
func mentionsExactOutput(body []byte) bool {
	text := strings.ToLower(string(body))
	return strings.Contains(text, "exact-output") || strings.Contains(text, "exact output") || strings.Contains(text, "exact_output")
}
