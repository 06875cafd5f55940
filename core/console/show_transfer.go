package console

import (
	"errors"
	"math/big"
	"net/http"
	"strings"

	"intents.internal/core/account"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
)

// legView is one side of an intent in people's words.
type legView struct {
	transfer.Leg
	Chain  string
	Amount string
}

// showTransfer answers GET /console/transfers/{id} with all there is to know of an intent.
func (c *console) showTransfer(w http.ResponseWriter, r *http.Request, user currentUser) error {
	id, err := idOf(r)
	if err != nil {
		return postgres.ErrTransferNotFound
	}
	intent, err := c.Store.Transfer(r.Context(), user.owner.ID, id)
	if err != nil {
		return err
	}
	events, err := c.Store.Events(r.Context(), user.owner.ID, intent.ID)
	if err != nil {
		return err
	}
	order, err := intent.Order()
	if err != nil {
		return err
	}
	tx, err := intent.Tx(c.Store.Now())
	if err != nil {
		return err
	}
	key, err := c.Store.Key(r.Context(), user.owner.ID, intent.KeyID)
	if err != nil && !errors.Is(err, account.ErrNotFound) { // it may be deleted
		return err
	}
	source, destination := c.legView(intent.Source), c.legView(intent.Destination)
	return c.render(w, r, user, "transfer", view{
		Title: titleOf(intent, source), Section: "transfers", Body: map[string]any{
			"Intent": intent, "Source": source, "Destination": destination, "Events": events, "Key": key,
			"Final": transfer.Final(intent.Type, intent.Status), "Scheme": intent.Settlement.Scheme, "Order": order, "Tx": tx,
		},
	})
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

// decimal writes a number of smallest units as one of whole tokens, exactly.
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
