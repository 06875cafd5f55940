package provider

import (
	"github.com/go-json-experiment/json"

	"intents.internal/core/quotes/quote"
)

// lifi is the quote API of LI.FI's intents (docs.li.fi/lifi-intents, POST /api/v1/integrator/quote/request). It is the Open Intents Framework's
// with chains and addresses apart.
type lifi struct{}

type lifiInput struct {
	Chain  string  `json:"chain"`
	User   string  `json:"user"`
	Asset  string  `json:"asset"`
	Amount *string `json:"amount"`
}

type lifiOutput struct {
	Chain    string  `json:"chain"`
	Receiver string  `json:"receiver"`
	Asset    string  `json:"asset"`
	Amount   *string `json:"amount"`
}

type lifiRequest struct {
	User           lifiUser   `json:"user"`
	Intent         lifiIntent `json:"intent"`
	SupportedTypes []string   `json:"supportedTypes"`
}

type lifiUser struct {
	Chain   string `json:"chain"`
	Address string `json:"address"`
}

type lifiIntent struct {
	IntentType      string       `json:"intentType"`
	SwapType        string       `json:"swapType"`
	Inputs          []lifiInput  `json:"inputs"`
	Outputs         []lifiOutput `json:"outputs"`
	MinValidUntil   int64        `json:"minValidUntil"`
	Preference      string       `json:"preference"`
	PartialFill     bool         `json:"partialFill"`
	FailureHandling []string     `json:"failureHandling"`
}

func (lifi) path() string { return "/api/v1/integrator/quote/request" }

func (lifi) encode(r Request) ([]byte, error) {
	amount := r.asked().String()
	input := lifiInput{Chain: r.Source.Account.Chain.String(), User: r.Source.Account.Address, Asset: assetAddress(r.Source.Token)}
	output := lifiOutput{Chain: r.Destination.Account.Chain.String(), Receiver: r.Destination.Account.Address, Asset: assetAddress(r.Destination.Token)}
	if r.Kind == quote.ExactInput {
		input.Amount = &amount
	} else {
		output.Amount = &amount
	}
	return json.Marshal(lifiRequest{
		User: lifiUser{Chain: input.Chain, Address: input.User},
		Intent: lifiIntent{
			IntentType: "oif-swap", SwapType: swapTypes[r.Kind], Inputs: []lifiInput{input}, Outputs: []lifiOutput{output},
			MinValidUntil: r.MinValidUntil.Unix(), Preference: "price", FailureHandling: []string{"refund-automatic"},
		},
		SupportedTypes: []string{userOpenOrder},
	})
}

// lifiQuote is one quote of an answer.
type lifiQuote struct {
	QuoteID    string  `json:"quoteId"`
	ValidUntil int64   `json:"validUntil"`
	ETA        float64 `json:"eta"`
	Preview    struct {
		Inputs  sides[lifiInput]  `json:"inputs"`
		Outputs sides[lifiOutput] `json:"outputs"`
	} `json:"preview"`
	Order *struct {
		signedOrder
		OpenIntentTx *struct {
			Chain string `json:"chain"`
			To    string `json:"to"`
			Data  string `json:"data"`
		} `json:"openIntentTx"`
	} `json:"order"`
	// PartialFill means that the order may be filled in part, which is never asked for.
	PartialFill bool        `json:"partialFill"`
	Metadata    exclusivity `json:"metadata"`
}

func (lifi) decode(body []byte) ([]candidate, error) { return decodeQuotes(body, lifiQuote.candidate) }

func (q lifiQuote) candidate() (c candidate, err error) {
	if len(q.Preview.Inputs) != 1 || len(q.Preview.Outputs) != 1 || q.Preview.Inputs[0].Amount == nil || q.Preview.Outputs[0].Amount == nil {
		return c, errSides
	}
	in, out := q.Preview.Inputs[0], q.Preview.Outputs[0]
	c = candidate{
		id:          q.QuoteID,
		source:      side{in.Chain, in.User, in.Asset, *in.Amount},
		destination: side{out.Chain, out.Receiver, out.Asset, *out.Amount},
		validUntil:  q.ValidUntil, eta: q.ETA, exclusive: q.Metadata.exclusive(), partialFill: q.PartialFill,
	}
	switch {
	case q.Order == nil:
	case q.Order.OpenIntentTx != nil:
		c.order = openedOrder(q.Order.OpenIntentTx.Chain, q.Order.OpenIntentTx.To, q.Order.OpenIntentTx.Data)
	default:
		c.order = q.Order.offered()
	}
	return c, nil
}

func (lifi) refusal(r Request, body []byte) quote.FailureCode {
	if r.Kind == quote.ExactOutput && mentionsExactOutput(body) {
		return quote.ExactOutputUnsupported
	}
	return quote.ProviderRefused
}
