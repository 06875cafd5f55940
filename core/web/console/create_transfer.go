package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// transferBody is the body of POST /v2/transfers. The form is converted to it, so that the API's decoder and rules validate the
// form's values.
type transferBody struct {
	Source      legBody `json:"source"`
	Destination legBody `json:"destination"`
	Deadline    string  `json:"deadline,omitempty"`
	Reference   string  `json:"reference,omitempty"`
	QuoteID     string  `json:"quoteId,omitempty"`
	Signing     string  `json:"signing,omitempty"`
}

type legBody struct {
	Account string `json:"account"`
	Token   string `json:"token,omitempty"`
	Amount  string `json:"amount,omitempty"`
}

// memberFields maps the body's members to the form's fields.
var memberFields = map[string]string{
	"/source/account": "sourceAccount", "/source/token": "sourceToken", "/source/amount": "sourceAmount",
	"/destination/account": "destinationAccount", "/destination/token": "destinationToken", "/destination/amount": "destinationAmount",
	"/deadline": "deadline", "/reference": "reference", "/signing": "signing",
}

// confirmView is an intent before it is recorded.
type confirmView struct {
	Intent              *transfer.Intent
	Source, Destination legView
	Environment         network.Environment
	Key                 *account.Key
	// Request is the body of POST /v2/transfers that will be recorded. The confirmation sends it back complete, so that a
	// registry change in the meantime cannot change its amounts.
	Request string
	// Quote is the quote that the intent is made from, nil for none.
	Quote *quoteView
	// Unwatched names the chains that nobody follows now, empty for none.
	Unwatched string
	// Fields are the form's values, to fill it in again.
	Fields    []hiddenField
	FormToken string
}

// hiddenField is a hidden input.
type hiddenField struct{ Name, Value string }

// confirmTransfer answers POST /console/transfers/new/confirm with the intent that the form asks for, or with quotes for a swap or bridge
// without one of its amounts. No intent is stored.
func (c *console) confirmTransfer(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	key, err := c.checkChoices(r, user, f)
	if err != nil || !f.ok() {
		return "", err
	}
	if f.wantsQuote() {
		return c.confirmQuote(w, r, user, f, key)
	}
	body, err := json.Marshal(c.transferBody(f))
	if err != nil {
		return "", err
	}
	request := f.transferRequest(body)
	if !f.ok() {
		return "", nil
	}
	intent, err := c.Intents.Draft(r.Context(), callerOf(key), request)
	if err != nil {
		return "", f.noteRejection(err)
	}
	return "", c.renderConfirm(w, r, user, f, confirmView{Intent: intent, Key: key, Request: string(body)})
}

// renderConfirm completes the view with what it shows of the intent, and writes its page.
func (c *console) renderConfirm(w http.ResponseWriter, r *http.Request, user currentUser, f *form, v confirmView) error {
	v.Source, v.Destination, v.Environment = c.legView(v.Intent.Source), c.legView(v.Intent.Destination), v.Key.Environment
	v.Unwatched = c.unwatched(v.Intent)
	v.Fields, v.FormToken = f.transferFields(), newFormToken()
	return c.render(w, r, user, "confirm-transfer", view{
		Title: "Record this " + string(v.Intent.Type) + "?", Section: "transfers", Of: v.Environment, Form: f, Body: v,
	})
}

// transferFields are the form's values as hidden fields.
func (f *form) transferFields() []hiddenField {
	fields := make([]hiddenField, len(transferFields))
	for n, name := range transferFields {
		fields[n] = hiddenField{name, f.values[name]}
	}
	return fields
}

// recordTransfer answers POST /console/transfers/new/record: it stores the intent that was confirmed and leads to its page. The form's
// one-time token is the intent's idempotency key, so the same form sent again leads to the same intent.
func (c *console) recordTransfer(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	token, err := formToken(user, f)
	if err != nil {
		return "", err
	}
	key, err := c.checkChoices(r, user, f)
	if err != nil || !f.ok() {
		return "", err
	}
	request := f.transferRequest([]byte(f.values["request"]))
	if !f.ok() {
		return "", nil
	}
	if err := c.Identity.Keys.TakeRequest(r.Context(), user.principal.Account, key); err != nil {
		return "", err
	}
	if request.QuoteID != "" {
		return c.recordQuoted(w, r, user, f, key, request, token)
	}
	record, _, err := c.Intents.CreateGranted(r.Context(), c.Identity.Grant(user.principal, identity.Develop), callerOf(key), request, formKey(token))
	if err != nil {
		return "", f.noteRejection(err)
	}
	return recordedPath(record.Intent), nil
}

func recordedPath(intent *transfer.Intent) string {
	done := "recorded"
	if intent.Signing.Scheme != "" {
		done = "recorded-to-sign"
	}
	return "/console/transfers/" + intent.ID.String() + "?done=" + done
}

// transferBody returns the form's fields as the body of POST /v2/transfers. A value that cannot be converted is an error of its field. Of the
// amounts one may be missing where a quote is asked for.
func (c *console) transferBody(f *form) transferBody {
	source, destination := f.values["sourceChain"], cmp.Or(f.values["destinationChain"], f.values["sourceChain"])
	body := transferBody{
		Source:      legBody{Account: f.account("sourceAccount", source), Token: f.values["sourceToken"]},
		Destination: legBody{Account: f.account("destinationAccount", destination), Token: f.values["destinationToken"]},
		Deadline:    c.deadline(f), Reference: f.values["reference"], Signing: f.values["signing"],
	}
	if !f.wantsQuote() || !f.is("sourceAmount", "") {
		body.Source.Amount = c.amount(f, "sourceAmount", "sourceToken")
	}
	switch {
	case f.is("destinationAmount", ""):
	case f.is("destinationToken", ""): // it defaults to the source token
		body.Destination.Amount = c.amount(f, "destinationAmount", "sourceToken")
	default:
		body.Destination.Amount = c.amount(f, "destinationAmount", "destinationToken")
	}
	return body
}

// account returns the CAIP-10 id of an address on a chain. The field may also hold a complete CAIP-10 id.
func (f *form) account(field, chain string) string {
	address := strings.TrimSpace(f.values[field])
	if address == "" {
		f.addOnce(pageError{status: http.StatusBadRequest, Field: field, Text: label(field) + " is required."})
	}
	return chain + ":" + strings.TrimPrefix(address, chain+":")
}

// amount parses an amount and returns it in the token's smallest unit.
func (c *console) amount(f *form, field, tokenField string) string {
	id, err := caip.ParseAccountID(f.values[tokenField])
	known, ok := c.Registry.Current().Token(id)
	if err != nil || !ok {
		f.addOnce(pageError{status: http.StatusBadRequest, Field: tokenField, Text: "Choose one of the tokens."})
		return ""
	}
	units, problem := smallestUnits(f.values[field], known)
	if problem != "" {
		f.addOnce(pageError{status: http.StatusBadRequest, Field: field, Text: label(field) + " " + problem + "."})
	}
	return units
}

func (c *console) deadline(f *form) string {
	chosen := f.values["deadline"]
	seconds, err := strconv.Atoi(chosen)
	if err != nil || !slices.ContainsFunc(lifetimes, func(l choice) bool { return l.Value == chosen }) {
		f.add(pageError{status: http.StatusBadRequest, Field: "deadline", Text: "Choose one of the deadlines."})
		return ""
	}
	return c.Now().UTC().Add(time.Duration(seconds) * time.Second).Truncate(time.Second).Format(time.RFC3339)
}

// transferRequest decodes the body of a request. Its issues become errors of the fields that have none yet.
func (f *form) transferRequest(body []byte) wire.TransferRequest {
	request, issues := wire.DecodeTransferRequest(body)
	f.addIssues(issues)
	return request
}

// addIssues adds the issues of a body as errors of the fields that have none yet.
func (f *form) addIssues(issues []wire.Issue) {
	for _, issue := range issues {
		field := memberFields[issue.Path]
		f.addOnce(pageError{status: http.StatusBadRequest, Field: field, Text: label(field) + ": " + issue.Message + "."})
	}
}

// checkChoices reads the environment, the chains and the key of the form, on which its other fields depend. A key that usableKeys
// does not list is nil and an error of its field.
func (c *console) checkChoices(r *http.Request, user currentUser, f *form) (key *account.Key, err error) {
	env, err := network.Parse(f.values["environment"])
	if err != nil {
		return nil, errUnknownField
	}
	keys, err := c.usableKeys(r.Context(), user, env)
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(keys, func(k *account.Key) bool { return f.is("key", k.ID.String()) })
	if n < 0 {
		f.add(pageError{status: http.StatusBadRequest, Field: "key", Text: "Choose one of your enabled " + string(env) + " keys."})
	} else {
		key = keys[n]
	}
	if len(keys) == 0 { // the page has no other field
		return nil, nil
	}
	if f.is("sourceChain", "") {
		f.add(pageError{status: http.StatusBadRequest, Field: "sourceChain", Text: "Choose the chain that the transfer starts on."})
	}
	c.tokens(f, env)
	return key, nil
}

// noteRejection adds a *transfer.Rejection to the form as an error of the field that it names, and the error of a chain of the
// other environment as one of the whole form. It returns any other error.
func (f *form) noteRejection(err error) error {
	if wrong, ok := errors.AsType[*intents.EnvironmentError](err); ok {
		f.add(pageError{status: http.StatusForbidden, Text: wire.NewChainNotAllowed(wrong.Chain, wrong.Environment, wrong.Key).Message})
		return nil
	}
	if rejection, ok := errors.AsType[*transfer.Rejection](err); ok {
		f.add(pageError{status: http.StatusUnprocessableEntity, Field: memberFields[rejection.Path], Text: rejection.Message})
		return nil
	}
	return f.note(err)
}

func callerOf(key *account.Key) transfer.Caller {
	return transfer.Caller{AccountID: key.AccountID, KeyID: key.ID, Environment: key.Environment}
}

// formKey returns the idempotency key of a form's token. It cannot be guessed without the form.
func formKey(token [32]byte) string { return fmt.Sprintf("console form %x", token) }
