package provider

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
	"intents.internal/pkg/fair"
	"intents.internal/pkg/network"
)

// pathOrders is the path of signed orders in the API of the framework's solver (oif-solver 926e39a).
const pathOrders = "/api/v1/orders"

// ordersAddress is nil for a provider that takes no orders.
func ordersAddress(e Endpoint, base *url.URL) *url.URL {
	if !e.Orders {
		return nil
	}
	return base.JoinPath(pathOrders)
}

// Solver returns the provider of a name in an environment that takes orders, nil for none.
func (p *Providers) Solver(environment network.Environment, name string) *Provider {
	for _, one := range p.In(environment) {
		if one.Name == name && one.orders != nil {
			return one
		}
	}
	return nil
}

// Reserve takes a slot among the calls in flight. The caller releases it.
func (p *Provider) Reserve(account uuid.UUID) (release func(), ok bool) {
	if p.slots.TryAcquire(account) != fair.Granted {
		return nil, false
	}
	return func() { p.slots.Release(account) }, true
}

// Unanswered is the status of an order whose solver's answer is not known.
const Unanswered = transfer.SubmissionStatus(quote.ProviderTimeout)

// Verdict is what a solver makes of an order.
type Verdict struct {
	Status transfer.SubmissionStatus
	// Detail is the solver's reason without what could be a signature, a header or a key of the URL; empty for none.
	Detail string
}

// Final reports whether the solver is not asked about the order any more.
func (v Verdict) Final() bool {
	switch v.Status {
	case transfer.SubmissionReceived, Unanswered, transfer.SubmissionStatus(quote.ProviderUnavailable), transfer.SubmissionStatus(quote.ProviderInvalid):
		return false // it may have the order
	default:
		return true
	}
}

// Submit posts a signed order, once and within the provider's timeout.
func (p *Provider) Submit(ctx context.Context, order *transfer.SignedOrder) Verdict {
	verdict := p.submit(ctx, order)
	p.countSubmission(verdict.Status)
	return verdict
}

func (p *Provider) submit(ctx context.Context, order *transfer.SignedOrder) Verdict {
	body, err := encode(order)
	if err != nil {
		return p.failed(ctx, &Error{Code: quote.ProviderInvalid, Cause: err})
	}
	status, answer, failure := p.exchangeOrder(ctx, http.MethodPost, p.orders.String(), body)
	if failure != nil {
		return p.failed(ctx, failure)
	}
	id := order.ID()
	verdict, err := readSubmission(status, answer, hex.EncodeToString(id[:]))
	if err != nil {
		return p.failed(ctx, orderFailure(status, err))
	}
	verdict.Detail = p.detail(verdict.Detail)
	return verdict
}

// failed is the verdict of a failure, which is logged.
func (p *Provider) failed(ctx context.Context, failure *Error) Verdict {
	p.logFailure(ctx, failure)
	return Verdict{Status: transfer.SubmissionStatus(failure.Code)}
}

// errOrderAnswer is of an answer that does not have the members of the API, or is about another order.
var errOrderAnswer = errors.New("the answer about an order cannot be read or is about another order")

// readSubmission reads the answer to a posted order with any status of HTTP: the solver says with 4xx and 5xx too what it makes of an order. The
// error means that it does not.
func readSubmission(status int, answer []byte, id string) (v Verdict, err error) {
	var a struct {
		OrderID string                    `json:"orderId"`
		Status  transfer.SubmissionStatus `json:"status"`
		Message string                    `json:"message"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return v, errOrderAnswer
	}
	same := strings.EqualFold(strings.TrimPrefix(a.OrderID, "0x"), id)
	switch a.Status {
	case transfer.SubmissionReceived:
		if !same || status >= http.StatusMultipleChoices {
			return v, errOrderAnswer
		}
	case transfer.SubmissionRejected, transfer.SubmissionError:
		if a.OrderID != "" && !same {
			return v, errOrderAnswer
		}
	default:
		return v, errOrderAnswer
	}
	return Verdict{Status: a.Status, Detail: a.Message}, nil
}

// orderFailure is the failure of an answer that says nothing of the order.
func orderFailure(status int, err error) *Error {
	code := quote.ProviderInvalid
	switch {
	case status == http.StatusTooManyRequests:
		code = quote.ProviderRateLimited
	case status >= http.StatusInternalServerError:
		code = quote.ProviderUnavailable
	case status >= http.StatusBadRequest:
		code = quote.ProviderRefused
	}
	if code != quote.ProviderInvalid {
		err = fmt.Errorf("HTTP %d", status)
	}
	return &Error{Code: code, Cause: err}
}

// OrderFailed asks the solver what became of an order. failed means that it could not open or fill it, and will not try again; anything else, and an
// order that it does not know, is no answer. Accounts are those of Ask.
func (p *Provider) OrderFailed(ctx context.Context, account uuid.UUID, id [32]byte) (detail string, failed bool) {
	release, ok := p.Reserve(account)
	if !ok {
		return "", false
	}
	defer release()
	answer, err := p.orderBreaker.do(account, func() ([]byte, error) {
		status, answer, failure := p.exchangeOrder(ctx, http.MethodGet, p.orders.JoinPath(hex.EncodeToString(id[:])).String(), nil)
		switch {
		case failure != nil:
			return nil, failure
		case status != http.StatusOK:
			return nil, orderFailure(status, errOrderAnswer)
		}
		return answer, nil
	})
	if failure, ok := errors.AsType[*Error](err); ok {
		if !failure.abandoned && failure.Code != quote.ProviderRefused { // it does not know the order
			p.logFailure(ctx, failure)
		}
		return "", false
	}
	if detail, failed = readFailure(answer); err != nil || !failed {
		return "", false
	}
	p.countSubmission(transfer.SubmissionFailed)
	return p.detail(detail), true
}

// readFailure reads the status of an order, which is a word or an object of one member: {"failed": ["Prepare", "revert 0x…"]}.
func readFailure(answer []byte) (reason string, failed bool) {
	var a struct {
		Status jsontext.Value `json:"status"`
		Order  struct {
			Status jsontext.Value `json:"status"`
		} `json:"order"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return "", false
	}
	status := a.Status
	if len(status) == 0 {
		status = a.Order.Status
	}
	switch status.Kind() {
	case '"':
		return "", string(status) == `"failed"`
	case '{':
		var object struct {
			Failed jsontext.Value `json:"failed"`
		}
		if json.Unmarshal(status, &object) != nil || len(object.Failed) == 0 {
			return "", false
		}
		var words []string
		if json.Unmarshal(object.Failed, &words) != nil {
			return "", true
		}
		return strings.Join(words, ": "), true
	default:
		return "", false
	}
}

// exchangeOrder makes one request about an order and returns its answer with any status of HTTP but a redirect.
func (p *Provider) exchangeOrder(ctx context.Context, method, address string, body []byte) (status int, answer []byte, failure *Error) {
	call, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	response, err := p.send(call, method, address, body)
	if err == nil {
		defer response.Body.Close()
		answer, err = io.ReadAll(response.Body)
	}
	if err != nil {
		return 0, nil, asError(noAnswer(ctx, err))
	}
	return response.StatusCode, answer, nil
}

// maxDetail bounds what is kept of a solver's reason, in bytes.
const maxDetail = 256

// longHex is what could be a part of a signature.
var longHex = regexp.MustCompile(`[0-9a-fA-F]{64,}`)

// detail is what is kept of a solver's reason: a line of text without what could be a part of a signature, the headers and the keys of the URL.
func (p *Provider) detail(text string) string {
	text = longHex.ReplaceAllString(p.secrets.Replace(text), "…")
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "…"
	}
	return strings.TrimSpace(text)
}

// minSecret is the length from which a value of a header or of the URL's query counts as a secret.
const minSecret = 6

func secretsOf(e Endpoint, address *url.URL) *strings.Replacer {
	var pairs []string
	add := func(secret string) {
		if len(secret) >= minSecret {
			pairs = append(pairs, secret, "…")
		}
	}
	for _, value := range e.Headers {
		add(value.Reveal())
	}
	for _, values := range address.Query() {
		for _, value := range values {
			add(value)
		}
	}
	return strings.NewReplacer(pairs...)
}
