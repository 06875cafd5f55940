package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// quotesView is the page with the quotes to choose from, the best first.
type quotesView struct {
	Quotes []quoteView
	// Failures says in words who has no quote, empty for nobody.
	Failures string
	Key      *account.Key
	// Renewed means that the quote that was chosen before cannot be used any more.
	Renewed bool
	// Fields are the form's values, which are sent with the chosen quote.
	Fields []hiddenField
}

// quoteView is a quote with display names.
type quoteView struct {
	quote.Quote
	Source, Destination legView
	Fees                []string
	// Takes is how long the fill is expected to take, empty for unknown.
	Takes string
	Ends  countdown
}

// countdown is a time that is ahead. A script shows how much of it is left, without the clock of the browser.
type countdown struct {
	At time.Time
	// Left is in seconds, by the database's clock.
	Left int
}

func (c *console) countdown(at time.Time) countdown {
	return countdown{at, max(0, int(at.Sub(c.Now())/time.Second))}
}

// quoting reports whether an environment has providers of quotes.
func (c *console) quoting(env network.Environment) bool {
	return c.Quotes != nil && len(c.Quotes.Providers.In(env)) > 0
}

// wantsQuote reports whether the form is of a swap or bridge without one of its amounts. A transfer delivers what it sends.
func (f *form) wantsQuote() bool {
	transfers := (f.is("destinationChain", "") || f.is("destinationChain", f.values["sourceChain"])) &&
		(f.is("destinationToken", "") || f.is("destinationToken", f.values["sourceToken"]))
	return !transfers && f.is("sourceAmount", "") != f.is("destinationAmount", "")
}

// askQuotes answers with the quotes for the form's swap or bridge. The providers are asked as by a request of the key.
func (c *console) askQuotes(w http.ResponseWriter, r *http.Request, user currentUser, f *form, key *account.Key, renewed bool) error {
	body := c.transferBody(f)
	body.Reference, body.Signing = "", "" // they are not of a quote
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, issues := wire.DecodeQuoteRequest(encoded)
	f.addIssues(issues)
	if !f.ok() {
		return nil
	}
	if c.Quotes == nil {
		return f.noteNoQuote(quotes.ErrNotConfigured)
	}
	if err := c.Identity.Keys.TakeRequest(r.Context(), user.principal.Account, key); err != nil {
		return err
	}
	answer, err := c.Quotes.Ask(r.Context(), c.Identity.Grant(user.principal, identity.Develop), callerOf(key), request)
	if err != nil {
		return f.noteNoQuote(err)
	}
	v := quotesView{Failures: failureTexts(answer.Failures), Key: key, Renewed: renewed, Fields: f.transferFields()}
	for _, q := range answer.Quotes {
		v.Quotes = append(v.Quotes, c.quoteView(q))
	}
	return c.render(w, r, user, "quotes", view{Title: "Choose a quote", Section: "transfers", Of: key.Environment, Form: f, Body: v})
}

func (c *console) quoteView(q quote.Quote) quoteView {
	v := quoteView{Quote: q, Source: c.legView(q.Source), Destination: c.legView(q.Destination), Ends: c.countdown(q.ExpiresAt)}
	for _, fee := range q.Fees {
		text := fee.Kind + " " + c.amountOf(fee.Amount, fee.Token)
		if !fee.Included {
			text += ", on top"
		}
		v.Fees = append(v.Fees, text)
	}
	if q.Duration > 0 {
		v.Takes = wait(q.Duration)
	}
	return v
}

// confirmQuote answers with the intent that the chosen quote makes, or with quotes to choose from if none is chosen or the chosen one cannot
// be used any more. A quote that has made its intent leads to that.
func (c *console) confirmQuote(w http.ResponseWriter, r *http.Request, user currentUser, f *form, key *account.Key) (string, error) {
	if c.Quotes == nil || f.is("quoteId", "") {
		return "", c.askQuotes(w, r, user, f, key, false)
	}
	caller := callerOf(key)
	q, err := c.Quotes.Find(r.Context(), caller.AccountID, caller.Environment, f.values["quoteId"])
	switch {
	case quoteUnusable(err):
		return "", c.askQuotes(w, r, user, f, key, true)
	case err != nil:
		return "", err
	case q.TransferID != uuid.Nil:
		return quoteUsedPath(q.TransferID), nil
	case !q.ExpiresAt.After(c.Now()):
		return "", c.askQuotes(w, r, user, f, key, true)
	}
	body, err := json.Marshal(quotedBody(q, f.values["reference"], f.values["signing"]))
	if err != nil {
		return "", err
	}
	request := f.transferRequest(body)
	if !f.ok() {
		return "", nil
	}
	intent, err := c.Quotes.Draft(r.Context(), caller, request, q)
	if err != nil {
		return "", f.noteRejection(err)
	}
	v := c.quoteView(q)
	return "", c.renderConfirm(w, r, user, f, confirmView{Intent: intent, Key: key, Request: string(body), Quote: &v})
}

// quotedBody is the body that makes the intent of a quote. It has all that is confirmed, so that nothing else is recorded.
func quotedBody(q quote.Quote, reference, signing string) transferBody {
	leg := func(l transfer.Leg) legBody { return legBody{l.Account.String(), l.Token.String(), l.Amount.String()} }
	return transferBody{
		Source: leg(q.Source), Destination: leg(q.Destination), Deadline: q.Deadline.Format(time.RFC3339), Reference: reference, QuoteID: q.ID.String(),
		Signing: signing,
	}
}

// recordQuoted stores the intent of a quote. A quote that cannot be used any more is answered with new ones.
func (c *console) recordQuoted(
	w http.ResponseWriter, r *http.Request, user currentUser, f *form, key *account.Key, request wire.TransferRequest, token [32]byte,
) (string, error) {
	if c.Quotes == nil {
		return "", f.noteNoQuote(quotes.ErrNotConfigured)
	}
	record, _, err := c.Quotes.Create(r.Context(), c.Identity.Grant(user.principal, identity.Develop), callerOf(key), request, formKey(token))
	if used, ok := errors.AsType[*quotes.UsedError](err); ok {
		return quoteUsedPath(used.TransferID), nil
	}
	if quoteUnusable(err) && f.wantsQuote() {
		return "", c.askQuotes(w, r, user, f, key, true)
	}
	if err != nil {
		return "", f.noteRejection(err)
	}
	return recordedPath(record.Intent), nil
}

// quoteUnusable reports whether another quote must be asked for.
func quoteUnusable(err error) bool {
	return errors.Is(err, quotes.ErrExpired) || errors.Is(err, quotes.ErrNotFound) || errors.Is(err, quotes.ErrMismatch)
}

func quoteUsedPath(id uuid.UUID) string {
	return "/console/transfers/" + id.String() + "?done=quote-used"
}

// noteNoQuote adds the reason why there are no quotes to the form, as an error of the amount that is missing. It handles any other error as
// noteRejection does.
func (f *form) noteNoQuote(err error) error {
	_, none := errors.AsType[*quotes.NoQuoteError](err)
	_, unavailable := errors.AsType[*quotes.UnavailableError](err)
	if !none && !unavailable && !errors.Is(err, quotes.ErrNotConfigured) && !errors.Is(err, quotes.ErrRouteUnsupported) {
		return f.noteRejection(err)
	}
	e := toPageError(err)
	e.Field = "destinationAmount"
	if f.is("sourceAmount", "") {
		e.Field = "sourceAmount"
	}
	f.add(e)
	return nil
}

// failureTexts says in words why providers have no quote.
func failureTexts(failures []quote.Failure) string {
	texts := make([]string, len(failures))
	for n, failure := range failures {
		texts[n] = failure.Provider + ": " + failureText(failure.Code)
	}
	return strings.Join(texts, "; ")
}

func failureText(code quote.FailureCode) string {
	switch code {
	case quote.ExactOutputUnsupported:
		return "asks for the amount that is sent"
	case quote.NoQuote:
		return "offers nothing"
	case quote.ProviderInvalid:
		return "its answer cannot be used"
	case quote.ProviderRefused:
		return "refuses"
	default:
		return "does not answer"
	}
}
