package console

import (
	"context"
	"errors"
	"math/big"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// legView is one side of an intent with display names.
type legView struct {
	transfer.Leg
	Chain  string
	Amount string
	// AccountURL and TokenURL are pages of the chain's explorer, empty for none.
	AccountURL, TokenURL string
}

// transferView is the page of an intent.
type transferView struct {
	*intents.Record
	Source, Destination legView
	Events              []eventView
	// Batch is the id of the batch that it was created in, empty for none.
	Batch string
	// Key is nil if it was deleted.
	Key *account.Key
	// QuoteEnds is the end of the intent's quote, nil if it has none or is no longer to be sent.
	QuoteEnds    *countdown
	Transactions []transactionView
	// Deliveries are those of the intent's events to the account's webhooks, the newest first.
	Deliveries []intentDeliveryView
	// Send is nil unless the intent is created and its user sends a transaction.
	Send *sendView
	// Signing is nil unless its user signs.
	Signing *signingView
	// Simulate are the statuses that can be simulated, none for an intent that was sent or is not of the test environment.
	Simulate  []transfer.Status
	Unwatched string
	Final     bool
	Labels    map[string]string
	Refresh   int
	PublicURL string
}

// transferOf returns the account's intent that the path identifies by its UUID or its order id.
func (c *console) transferOf(r *http.Request, user currentUser) (*transfer.Intent, error) {
	return c.Intents.Find(r.Context(), user.principal.Account.ID, r.PathValue("id"))
}

// showTransfer answers GET /console/transfers/{id} with all details of an intent.
func (c *console) showTransfer(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	intent, err := c.transferOf(r, user)
	if err != nil {
		return err
	}
	events, err := c.Transfers.Events(r.Context(), user.principal.Account.ID, intent.ID)
	if err != nil {
		return err
	}
	record, err := c.Intents.Record(r.Context(), intent)
	if err != nil {
		return err
	}
	var sending *sendView
	if intent.Status == transfer.Created { // a second transaction would pay again
		if sending, err = c.sendView(intent, record.Tx); err != nil {
			return err
		}
	}
	deliveries, err := c.intentDeliveries(r.Context(), user, intent)
	if err != nil {
		return err
	}
	signing, err := c.signingView(record)
	if err != nil {
		return err
	}
	key, err := c.Identities.Key(r.Context(), user.principal.Account.ID, intent.KeyID)
	if err != nil && !errors.Is(err, account.ErrNotFound) { // the key may have been deleted
		return err
	}
	var ends *countdown
	if (sending != nil || signing != nil && signing.Sign != nil) && intent.Quote.ID != uuid.Nil {
		ends = new(c.countdown(intent.Quote.ExpiresAt))
	}
	source := c.legView(intent.Source)
	return c.render(w, r, user, "transfer", view{Title: titleOf(intent, source), Section: "transfers", Of: intent.Environment, Form: f, Body: transferView{
		Record: record, Source: source, Destination: c.legView(intent.Destination), Events: c.eventViews(intent, events), Batch: batchID(intent), Key: key, QuoteEnds: ends,
		Transactions: c.transactionViews(record.Transactions), Deliveries: deliveries, Send: sending, Signing: signing,
		Simulate: intent.Simulatable(len(record.Transactions)), Unwatched: c.unwatched(intent),
		Final: transfer.Final(intent.Type, intent.Status), Labels: intent.Labels.Pairs(), Refresh: refreshSeconds(record), PublicURL: c.PublicURL,
	}})
}

// intentDeliveryView is a delivery of an intent's event, with the URL of its webhook.
type intentDeliveryView struct {
	deliveryView
	URL string
}

func (c *console) intentDeliveries(ctx context.Context, user currentUser, intent *transfer.Intent) ([]intentDeliveryView, error) {
	if !c.Webhooks.Configured() {
		return nil, nil
	}
	owner := feed.Owner{AccountID: user.principal.Account.ID, Environment: intent.Environment}
	deliveries, urls, err := c.Webhooks.DeliveriesOfIntent(ctx, owner, intent.ID)
	views := make([]intentDeliveryView, len(deliveries))
	for n, d := range deliveries {
		views[n] = intentDeliveryView{newDeliveryView(d), urls[d.WebhookID]}
	}
	return views, err
}

// refreshSeconds returns the interval at which an intent's open page reloads, 0 for never. Created, submitted and confirmed
// change within seconds, a simulated one only as its developer says. Failed and expired rarely change, and only because of the chain (transfer.Evaluate): when a settler of a
// swap or bridge shows that the order was opened after all, or when a known reverted or dropped transaction gets into another
// block. Only a reorganization changes a final intent, or a late fill of a refunded order, and only a reported transaction changes an
// expired transfer without a known transaction.
func refreshSeconds(record *intents.Record) int {
	const soon, seldom, never = 2, 30, 0
	switch i := record.Intent; {
	case transfer.Final(i.Type, i.Status):
		return never
	case i.Simulated:
		return seldom
	case i.Status != transfer.Failed && i.Status != transfer.Expired:
		return soon
	case i.Type != transfer.Transfer || len(record.Transactions) > 0:
		return seldom
	default:
		return never
	}
}

// eventView is an event with the transaction that caused it.
type eventView struct {
	transfer.Event
	// Chain is the name of the transaction's chain, empty if no transaction caused the event; then Transaction is the intent's
	// transaction, if it has one.
	Chain, Transaction string
	Block              *transfer.Block
	// Reason explains a failure, nil for none.
	Reason *transfer.FailureReason
}

func (c *console) eventViews(intent *transfer.Intent, events []transfer.Event) []eventView {
	summary, views := intent.Summary(), make([]eventView, len(events))
	for n, e := range events {
		views[n] = eventView{Event: e, Transaction: e.Hash}
		if seen := e.Observed; seen != nil {
			views[n].Chain, views[n].Transaction, views[n].Block = c.chainName(seen.Chain), seen.Hash.Hex(), seen.Block
			if e.Failure != "" {
				views[n].Reason = summary.Explain(e.Failure, seen)
			}
		}
	}
	return views
}

// transactionView is a transaction with its chain's name.
type transactionView struct {
	intents.ShownTransaction
	ChainName string
}

func (c *console) transactionViews(transactions []intents.ShownTransaction) []transactionView {
	views := make([]transactionView, len(transactions))
	for n, t := range transactions {
		views[n] = transactionView{t, c.chainName(t.Chain)}
	}
	return views
}

// unwatched names the chains of an intent that is not final and on which nobody looks for its transactions, empty for none.
func (c *console) unwatched(intent *transfer.Intent) string {
	if transfer.Final(intent.Type, intent.Status) || intent.Simulated {
		return ""
	}
	var names []string
	for _, id := range []caip.ChainID{intent.Source.Account.Chain, intent.Destination.Account.Chain} {
		if name := c.chainName(id); !c.Registry.Current().Watched(id) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

func titleOf(intent *transfer.Intent, source legView) string {
	kind := string(intent.Type)
	return strings.ToUpper(kind[:1]) + kind[1:] + " of " + source.Amount
}

func (c *console) legView(l transfer.Leg) legView {
	known, _ := c.Registry.Current().Chain(l.Account.Chain)
	return legView{
		Leg: l, Chain: c.chainName(l.Account.Chain), Amount: c.amountOf(l.Amount, l.Token),
		AccountURL: known.AddressURL(l.Account.Address), TokenURL: known.TokenURL(l.Token.Address),
	}
}

func (c *console) amountOf(units *big.Int, token caip.AccountID) string {
	if known, ok := c.Registry.Current().Token(token); ok {
		return decimal(units, int(known.Decimals)) + " " + known.Symbol
	}
	return units.String() + " units"
}

// decimal formats a number of smallest units as whole tokens, exactly.
func decimal(units *big.Int, decimals int) string {
	digits := units.String()
	if short := decimals + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	whole, fraction := digits[:len(digits)-decimals], strings.TrimRight(digits[len(digits)-decimals:], "0")
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}
