package console

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// newTransferPath is the path of the form. The form posts to confirm below it, and the confirmation page posts to record.
const newTransferPath = "/console/transfers/new"

// transferFields are the fields of the form. Amounts are in whole tokens, the deadline is a number of seconds from now, tokens are CAIP-10
// ids and accounts are addresses on the chain of their side.
var transferFields = []string{
	"environment", "key", "sourceChain", "sourceAccount", "sourceToken", "sourceAmount",
	"destinationChain", "destinationAccount", "destinationToken", "destinationAmount", "deadline", "reference", "signing",
}

// lifetimes are the choices for the deadline. The deadline is fixed when the intent is shown for confirmation and must be at
// least a minute ahead when it is confirmed, so the shortest choice leaves a minute to confirm. It is too short for swaps and bridges from a
// chain that takes longer than that for its confirmations.
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
	// Keys are the keys that can record an intent. Without a key the page has no form.
	Keys   []*account.Key
	Chains []chainChoice
	// Source and Destination have tokens once their chains are chosen.
	Source, Destination tokenChoices
	Lifetimes           []choice
	// Signings are the ways to authorize the intent that the source chain may have.
	Signings []choice
	// Quotes means that one of the amounts of a swap or bridge may be left to providers.
	Quotes bool
}

// chainChoice is a chain, and whether its intents are followed now.
type chainChoice struct {
	registry.Chain
	Watched bool
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

// newTransfer answers GET /console/transfers/new. The chains in the query determine the tokens to choose from; the query's other
// fields are filled in.
func (c *console) newTransfer(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	if f.is("environment", "") {
		f.values["environment"] = string(user.environment)
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
	v := newTransferView{Environment: env, Keys: keys, Lifetimes: lifetimes, Quotes: c.quoting(env)}
	registry := c.Registry.Current()
	for _, known := range registry.Chains {
		if known.Environment == env {
			v.Chains = append(v.Chains, chainChoice{known, registry.Watched(known.ID)})
		}
	}
	if len(keys) > 0 {
		v.Source, v.Destination = c.tokens(f, env)
	}
	v.Signings = c.signings(f)
	return c.render(w, r, user, "new-transfer", view{Title: "New transfer", Section: "transfers", Of: env, Form: f, Body: v})
}

// signings are the choices for how the intent is authorized: the schemes that a settlement of the source chain takes, and ERC-3009 where a token of
// the chain has it. Whether the chosen tokens go with one is a rule of the intent.
func (c *console) signings(f *form) []choice {
	choices := []choice{{"", "The account sends a transaction"}}
	id, err := caip.ParseChainID(f.values["sourceChain"])
	known, ok := c.Registry.Current().Chain(id)
	if err != nil || !ok {
		return choices
	}
	takes := func(scheme wire.SigningScheme) bool {
		return slices.ContainsFunc(known.Settlements, func(s registry.Settlement) bool { return slices.Contains(s.Signing, scheme) })
	}
	if takes(wire.ERC3009) || slices.ContainsFunc(c.Registry.Current().TokensOn(id), func(t registry.Token) bool { return t.ERC3009 != nil }) {
		choices = append(choices, choice{string(wire.ERC3009), "It signs an authorization of the token (ERC-3009)"})
	}
	if takes(wire.Permit2) {
		choices = append(choices, choice{string(wire.Permit2), "It signs by Permit2, which it has approved"})
	}
	return choices
}

// usableKeys returns the enabled keys of an environment that may create intents.
func (c *console) usableKeys(ctx context.Context, user currentUser, env network.Environment) (usable []*account.Key, err error) {
	keys, err := c.Identities.Keys(ctx, user.principal.Account.ID)
	if err != nil {
		return nil, err
	}
	now := c.Now()
	for _, key := range keys {
		if key.Environment == env && newKeyView(key, now).State == stateEnabled && key.Scopes.Has(apikey.IntentsWrite) {
			usable = append(usable, key)
		}
	}
	return usable, nil
}

// tokens returns the tokens of the chosen chains, none before a chain is chosen. The destination chain defaults to the source
// chain.
func (c *console) tokens(f *form, env network.Environment) (source, destination tokenChoices) {
	destinationField := "destinationChain"
	if f.is(destinationField, "") {
		destinationField = "sourceChain"
	}
	return c.tokensOn(f, "sourceChain", env, "sourceToken"), c.tokensOn(f, destinationField, env, "destinationToken")
}

// tokensOn returns the tokens on the chain in field, with the token in tokenField selected. A chain outside the environment has
// no tokens and is an error of its field.
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

// tokenText distinguishes tokens with the same symbol by their addresses.
func tokenText(t registry.Token) string {
	if registry.Native(t.ID) {
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

// smallestUnits parses an amount of whole tokens exactly, such as "1.5" or "1.5 USDC". The problem is a text for the user, empty
// if the amount is valid.
func smallestUnits(text string, t registry.Token) (units, problem string) {
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
