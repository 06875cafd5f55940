package console

import (
	"errors"
	"math/big"
	"net/http"
	"slices"
	"strings"

	"intents.internal/core/identity/account"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/caip"
)

// legView is one side of an intent with display names.
type legView struct {
	transfer.Leg
	Chain  string
	Amount string
}

// showTransfer answers GET /console/transfers/{id} with all details of an intent.
func (c *console) showTransfer(w http.ResponseWriter, r *http.Request, user currentUser) error {
	intent, err := c.transferOf(r, user)
	if err != nil {
		return err
	}
	return c.renderTransfer(w, r, user, intent, &form{})
}

func (c *console) transferOf(r *http.Request, user currentUser) (*transfer.Intent, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, postgres.ErrTransferNotFound
	}
	return c.Store.Transfer(r.Context(), user.principal.Account.ID, id)
}

func (c *console) renderTransfer(w http.ResponseWriter, r *http.Request, user currentUser, intent *transfer.Intent, f *form) error {
	events, err := c.Store.Events(r.Context(), user.principal.Account.ID, intent.ID)
	if err != nil {
		return err
	}
	history, err := c.Store.TransferHistory(r.Context(), intent)
	if err != nil {
		return err
	}
	order, err := intent.Order()
	if err != nil {
		return err
	}
	now := c.Store.Now()
	tx, err := intent.TxOf(&order, now)
	if err != nil {
		return err
	}
	var sending *sendView
	if intent.Status == transfer.Created { // a second transaction would pay again
		if sending, err = c.sendView(intent, tx); err != nil {
			return err
		}
	}
	key, err := c.Store.Key(r.Context(), user.principal.Account.ID, intent.KeyID)
	if err != nil && !errors.Is(err, account.ErrNotFound) { // the key may have been deleted
		return err
	}
	source, destination := c.legView(intent.Source), c.legView(intent.Destination)
	return c.render(w, r, user, "transfer", view{
		Title: titleOf(intent, source), Section: "transfers", Form: f, Body: map[string]any{
			"Intent": intent, "Source": source, "Destination": destination, "Events": c.eventViews(events), "Key": key,
			"Transactions": c.transactionViews(intent.Shown(history)), "Confirmations": c.confirmations(intent, history),
			"Refundable": intent.Refundable(history), "Unverifiable": history.Unverifiable(), "PublicURL": c.PublicURL,
			"Unwatched": c.unwatched(intent),
			"Final":     transfer.Final(intent.Type, intent.Status), "Refresh": refreshSeconds(intent, history), "Scheme": intent.Settlement.Scheme, "Order": order, "Tx": tx,
			"Send": sending, "Executed": intent.Executed(),
		},
	})
}

// refreshSeconds returns the interval at which an intent's open page reloads, 0 for never. Created, submitted and confirmed
// change within seconds. Failed and expired rarely change, and only because of the chain (transfer.Evaluate): when a settler of a
// swap or bridge shows that the order was opened after all, or when a known reverted or dropped transaction gets into another
// block. Only a reorganization changes a final intent, and only a reported transaction changes an expired transfer without a
// known transaction.
func refreshSeconds(intent *transfer.Intent, history transfer.History) int {
	const soon, seldom, never = 2, 30, 0
	switch {
	case transfer.Final(intent.Type, intent.Status):
		return never
	case intent.Status != transfer.Failed && intent.Status != transfer.Expired:
		return soon
	case intent.Type != transfer.Transfer || len(history.Transactions) > 0:
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
}

func (c *console) eventViews(events []transfer.Event) []eventView {
	views := make([]eventView, len(events))
	for n, e := range events {
		views[n] = eventView{Event: e, Transaction: e.Hash}
		if seen := e.Observed; seen != nil {
			views[n].Chain, views[n].Transaction, views[n].Block = c.chainName(seen.Chain), seen.Hash.Hex(), seen.Block
		}
	}
	return views
}

// transactionView is a transaction with its chain's name.
type transactionView struct {
	transfer.Transaction
	ChainName string
}

func (c *console) transactionViews(transactions []transfer.Transaction) []transactionView {
	views := make([]transactionView, len(transactions))
	for n, t := range transactions {
		views[n] = transactionView{t, c.chainName(t.Chain)}
	}
	return views
}

// confirmations returns nil while the intent's transaction is in no block, and if the chain is no longer in the registry.
func (c *console) confirmations(intent *transfer.Intent, history transfer.History) *transfer.Confirmations {
	source, known := c.Registry.Current().Chain(intent.Source.Account.Chain)
	if !known {
		return nil
	}
	return history.Confirmations(source.Confirmations)
}

// unwatched names the chains of an intent that is not final and on which nobody looks for its transactions, empty for none.
func (c *console) unwatched(intent *transfer.Intent) string {
	if transfer.Final(intent.Type, intent.Status) {
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
	v := legView{Leg: l, Chain: c.chainName(l.Account.Chain), Amount: l.Amount.String() + " units"}
	if known, ok := c.Registry.Current().Token(l.Token); ok {
		v.Amount = decimal(l.Amount, int(known.Decimals)) + " " + known.Symbol
	}
	return v
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
