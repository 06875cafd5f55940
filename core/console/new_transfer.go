package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"intents.internal/core/account"
	"intents.internal/core/chain"
	"intents.internal/core/token"
	"intents.internal/core/transfer"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// newTransferPath is the page with the form. The form posts to confirm below it, and what that shows posts to record.
const newTransferPath = "/console/transfers/new"

// transferFields are the fields of the form. Amounts are in whole tokens, the deadline is a number of seconds from now, tokens are CAIP-10
// ids and accounts are addresses on the chain of their side.
var transferFields = []string{
	"environment", "key", "sourceChain", "sourceAccount", "sourceToken", "sourceAmount",
	"destinationChain", "destinationAccount", "destinationToken", "destinationAmount", "deadline", "reference",
}

// lifetimes are the choices of the deadline. It is fixed once the intent is shown for confirmation and must be a minute ahead when it is
// confirmed, so the shortest leaves a minute for that.
var lifetimes = []choice{
	{lifetime(2 * time.Minute), "2 minutes from now"},
	{lifetime(10 * time.Minute), "10 minutes from now"},
	{lifetime(transfer.DefaultLifetime), "1 hour from now"},
	{lifetime(24 * time.Hour), "1 day from now"},
	{lifetime(transfer.LongestLife), "7 days from now"},
}

func lifetime(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// newTransferView is the page with the form.
type newTransferView struct {
	Environment network.Environment
	// Keys are those that an intent can be recorded with. Without one there is no form.
	Keys   []*account.Key
	Chains []chain.Chain
	// Source and Destination have tokens once their chains are chosen.
	Source, Destination tokenChoices
	Lifetimes           []choice
	// Tabs are the links to the form of either environment.
	Tabs []environmentTab
}

// tokenChoices are the tokens of one chain.
type tokenChoices struct {
	Chain  string
	Tokens []tokenChoice
}

type tokenChoice struct {
	Value, Text, Symbol string
	Decimals            uint8
	Selected            bool
}

type environmentTab struct {
	Environment network.Environment
	Current     bool
}

// newTransfer answers GET /console/transfers/new. Which tokens can be chosen follows from the chains in the query; the other fields of
// the query are filled in.
func (c *console) newTransfer(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readQuery(r, transferFields...)
	if err != nil {
		return err
	}
	if f.is("environment", "") {
		f.values["environment"] = string(network.Test)
	}
	if f.is("deadline", "") {
		f.values["deadline"] = lifetime(transfer.DefaultLifetime)
	}
	return c.renderNewTransfer(w, r, user, f)
}

func (c *console) renderNewTransfer(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	env, err := network.Parse(f.values["environment"])
	if err != nil {
		return errUnknownField
	}
	keys, err := c.usableKeys(r.Context(), user, env)
	if err != nil {
		return err
	}
	v := newTransferView{Environment: env, Keys: keys, Lifetimes: lifetimes}
	for _, tab := range []network.Environment{network.Test, network.Live} {
		v.Tabs = append(v.Tabs, environmentTab{tab, tab == env})
	}
	for _, known := range c.Registry.Current().Chains {
		if known.Environment == env {
			v.Chains = append(v.Chains, known)
		}
	}
	if len(keys) > 0 {
		v.Source, v.Destination = c.tokens(f, env)
	}
	return c.render(w, r, user, "new-transfer", view{Title: "New transfer", Section: "transfers", Form: f, Body: v})
}

// usableKeys are the enabled keys of an environment that may make intents.
func (c *console) usableKeys(ctx context.Context, user currentUser, env network.Environment) (usable []*account.Key, err error) {
	keys, err := c.Store.Keys(ctx, user.acting.Account.ID)
	if err != nil {
		return nil, err
	}
	now := c.Store.Now()
	for _, key := range keys {
		if key.Environment == env && newKeyView(key, now).State == stateEnabled && key.Scopes.Has(apikey.IntentsWrite) {
			usable = append(usable, key)
		}
	}
	return usable, nil
}

// tokens are those of the chains that the form chooses, none before one is. Without a destination chain it is the source chain.
func (c *console) tokens(f *form, env network.Environment) (source, destination tokenChoices) {
	destinationField := "destinationChain"
	if f.is(destinationField, "") {
		destinationField = "sourceChain"
	}
	return c.tokensOn(f, "sourceChain", env, "sourceToken"), c.tokensOn(f, destinationField, env, "destinationToken")
}

// tokensOn are the tokens on the chain that a field names, with the one selected that another field names. A chain that is not one of the
// environment has none and is an error of its field.
func (c *console) tokensOn(f *form, field string, env network.Environment, tokenField string) tokenChoices {
	if f.is(field, "") {
		return tokenChoices{}
	}
	registry := c.Registry.Current()
	id, err := caip.ParseChainID(f.values[field])
	known, ok := registry.Chain(id)
	if err != nil || !ok || known.Environment != env {
		f.addOnce(pageError{status: http.StatusBadRequest, Field: field, Text: "Choose one of the " + string(env) + " chains."})
		return tokenChoices{}
	}
	tokens := registry.TokensOn(id)
	choices := tokenChoices{Chain: known.Name, Tokens: make([]tokenChoice, len(tokens))}
	for n, t := range tokens {
		value := t.ID.String()
		choices.Tokens[n] = tokenChoice{Value: value, Text: tokenText(t), Symbol: t.Symbol, Decimals: t.Decimals, Selected: f.is(tokenField, value)}
	}
	return choices
}

// tokenText tells tokens of one symbol apart by their addresses.
func tokenText(t token.Definition) string {
	if token.Native(t.ID) {
		return t.Symbol + " (the chain's own coin)"
	}
	return t.Symbol + " (" + short(t.ID.Address) + ")"
}

// addOnce adds an error unless its field has one.
func (f *form) addOnce(e pageError) {
	if f.At(e.Field).Error == "" {
		f.add(e)
	}
}

// smallestUnits reads an amount of whole tokens, such as "1.5" or "1.5 USDC", exactly. problem says what is wrong with it, empty for
// nothing.
func smallestUnits(text string, t token.Definition) (units, problem string) {
	number := strings.TrimSpace(text)
	if prefix := len(number) - len(t.Symbol); prefix > 0 && strings.EqualFold(number[prefix:], t.Symbol) {
		number = strings.TrimSpace(number[:prefix])
	}
	whole, fraction, _ := strings.Cut(number, ".")
	if whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return "", "must be a number of " + t.Symbol + " such as 1.5, in digits with at most one point"
	}
	fraction = strings.TrimRight(fraction, "0")
	if missing := int(t.Decimals) - len(fraction); missing >= 0 {
		fraction += strings.Repeat("0", missing)
	} else {
		return "", "has more decimal places than the " + strconv.Itoa(int(t.Decimals)) + " of " + t.Symbol
	}
	if units = strings.TrimLeft(whole+fraction, "0"); units == "" {
		units = "0"
	}
	return units, ""
}
