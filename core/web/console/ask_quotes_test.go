package console_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/html"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/web/console"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/retrytest"
)

// startQuoting starts a site that asks solvers, by LI.FI's API.
func startQuoting(t *testing.T, solvers ...*providertest.Solver) *site {
	t.Helper()
	for _, s := range solvers {
		s.Endpoint.Kind = provider.LIFI
	}
	store := pgtest.New(t)
	return startPages(t, store, func(*intents.Config) {}, func(c *console.Config) {
		c.Quotes = quotes.New(quotes.Config{
			Store: store.Quotes, Registry: c.Registry, Intents: c.Intents, Providers: providertest.Providers(t, prometheus.NewRegistry(), solvers...),
		})
	})
}

// offering is a solver that gives and takes these amounts.
func offering(t *testing.T, name, gives, takes string) *providertest.Solver {
	t.Helper()
	s := providertest.Start(t, name, network.Test)
	s.SetAnswer(providertest.Quotes{Gives: []string{gives}, Takes: takes}.ServeHTTP)
	return s
}

// bridge are the fields of a bridge of USDC from Sepolia to Base Sepolia, without its amounts.
func bridge(keyID string, change ...string) []string {
	return payment(keyID, append([]string{"sourceAmount", "", "destinationChain", baseSepolia, "destinationToken", baseSepoliaUSDC, "reference", "inv-7"}, change...)...)
}

// sent is what a form sends: its hidden fields and the ticked choice.
func (a *answer) sent(path string) (fields []string) {
	a.t.Helper()
	for n := range a.form(path).Descendants() {
		ticked := slices.ContainsFunc(n.Attr, func(at html.Attribute) bool { return at.Key == "checked" })
		if n.Data == "input" && (attribute(n, "type") == "hidden" || ticked) {
			fields = append(fields, attribute(n, "name"), attribute(n, "value"))
		}
	}
	return fields
}

const (
	confirmPath = newTransferPath + "/confirm"
	recordPath  = newTransferPath + "/record"
)

// A swap or bridge without one of its amounts, from the quotes to the intent's page.
func TestAskQuotes(t *testing.T) {
	t.Parallel()
	second := offering(t, "second", "1490000", "1520000")
	s := startQuoting(t, offering(t, "first", "1480000", "1510000"), second)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	ann.get(newTransferPath+"?sourceChain="+sepolia).is(http.StatusOK, "leave it empty to get quotes. Leave it empty for a transfer", "Leave it empty to get quotes of what a swap or bridge costs")

	for _, c := range []struct {
		name, field, provider, row, paid, received string
	}{
		{"exact input", "sourceAmount", "second", "second 1.5 USDC 1.49 USDC total 0.01 USDC 30 seconds", "1500000", "1490000"},
		{"exact output", "destinationAmount", "first", "first 1.51 USDC 1.5 USDC total 0.01 USDC 30 seconds", "1510000", "1500000"},
	} {
		page := ann.post(confirmPath, bridge(keyID, c.field, "1.5")...).is(http.StatusOK, "Choose a quote", c.row, "Nothing is recorded yet.")
		left := page.find(func(n *html.Node) bool { return attribute(n, "role") == "timer" })
		if seconds := attribute(left, "data-left"); len(seconds) != 2 {
			t.Errorf("%s: the script is told of %q seconds", c.name, seconds)
		}
		choices := 0
		for n := range page.root.Descendants() {
			if attribute(n, "type") == "radio" {
				choices++
			}
		}
		if choices != 2 {
			t.Errorf("%s: %d quotes to choose from", c.name, choices)
		}
		confirmed := ann.post(confirmPath, page.sent(confirmPath)...).
			is(http.StatusOK, "Record this bridge?", "Quote of "+c.provider, "Smallest units "+c.paid, "Smallest units "+c.received, "inv-7", "before the quote expires")
		record := confirmed.sent(recordPath)
		recorded := ann.post(recordPath, record...)
		intentPage, _, _ := strings.Cut(recorded.header.Get("Location"), "?")
		recorded.leadsTo(intentPage + "?done=recorded")
		ann.get(intentPage).is(http.StatusOK, "Quote of "+c.provider+", to be sent before", "inv-7")

		t.Log(c.name + ": the form again, the quote again, and its page left open, lead to the one intent, also once the quote has run out")
		other := ann.post(confirmPath, bridge(keyID, c.field, "1.5")...).sent(confirmPath)
		pgtest.Exec(t, s.store, "UPDATE quotes SET expires_at = created_at WHERE transfer_id IS NOT NULL")
		ann.post(recordPath, record...).leadsTo(intentPage + "?done=recorded")
		ann.post(confirmPath, page.sent(confirmPath)...).leadsTo(intentPage + "?done=quote-used")
		again := slices.Clone(record)
		again[slices.Index(again, "formToken")+1] = ann.post(confirmPath, other...).field("formToken")
		ann.post(recordPath, again...).leadsTo(intentPage + "?done=quote-used")
		ann.get(intentPage+"?done=quote-used").is(http.StatusOK, "The quote was already used for this intent")
	}
	second.SetAnswer(providertest.Status(http.StatusInternalServerError, ""))
	ann.post(confirmPath, payment(keyID, "destinationToken", sepoliaWETH)...).
		is(http.StatusOK, "Type swap", "first 1.5 USDC 0.00000000000148 WETH none stated", "No quote of second: does not answer.")
	got := pgtest.LookUp[string](t, s.store, `SELECT string_agg(quote_provider || ' ' || source_amount || ' ' || destination_amount, ', ' ORDER BY id) FROM transfers`)
	if want := "second 1500000 1490000, first 1510000 1500000"; got != want {
		t.Errorf("recorded: %s, want %s", got, want)
	}
}

// A quote that ran out, is not the account's or does not fit is answered with new ones, wherever it was shown.
func TestAskQuotes_Renewed(t *testing.T) {
	t.Parallel()
	s := startQuoting(t, offering(t, "first", "1480000", ""))
	ann, ben := s.signedUp(t, "ann@example.com"), s.signedUp(t, "ben@example.com")
	keyID, _ := ann.makeKey("mover")
	bensKey, _ := ben.makeKey("mover")
	const renewed = "The quote that was chosen cannot be used any more. Nothing is recorded; these are new ones."
	fields := bridge(keyID, "sourceAmount", "1.5")
	chosen := ann.post(confirmPath, fields...).sent(confirmPath)
	record := ann.post(confirmPath, chosen...).sent(recordPath)
	ben.post(confirmPath, append(bridge(bensKey, "sourceAmount", "1.5"), "quoteId", chosen[slices.Index(chosen, "quoteId")+1])...).is(http.StatusOK, renewed)
	other := slices.Clone(record)
	n := slices.Index(other, "request") + 1
	other[n] = strings.Replace(other[n], "1480000", "1480001", 1)
	ann.post(recordPath, other...).is(http.StatusOK, renewed)

	pgtest.Exec(t, s.store, "UPDATE quotes SET expires_at = created_at")
	ann.post(recordPath, record...).is(http.StatusOK, renewed)
	page := ann.post(confirmPath, chosen...).is(http.StatusOK, renewed, "first 1.5 USDC 1.48 USDC")
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM transfers"); n != 0 {
		t.Errorf("%d intents are stored", n)
	}
	recorded := ann.post(recordPath, ann.post(confirmPath, page.sent(confirmPath)...).sent(recordPath)...)
	if recorded.status != http.StatusSeeOther {
		t.Errorf("a new quote: %d %s", recorded.status, recorded.text())
	}
}

// Without a quote the form says why, and can be sent with both amounts. A transfer never asks.
func TestAskQuotes_None(t *testing.T) {
	t.Parallel()
	asked, elsewhere := providertest.Start(t, "first", network.Test), providertest.Start(t, "first", network.Test)
	elsewhere.Endpoint.Deployment = "another"
	quoting, plain := startQuoting(t, asked), start(t)
	cem := startQuoting(t, elsewhere).signedUp(t, "cem@example.com")
	cemsKey, _ := cem.makeKey("mover")
	const unsupported = "No provider of quotes serves this swap or bridge. Give both amounts yourself."
	cem.post(confirmPath, bridge(cemsKey, "sourceAmount", "1.5")...).is(http.StatusUnprocessableEntity).tied("destinationAmount", unsupported)
	cem.post(confirmPath, bridge(cemsKey, "destinationAmount", "1.5")...).is(http.StatusUnprocessableEntity).tied("sourceAmount", unsupported)
	ann, ben := quoting.signedUp(t, "ann@example.com"), plain.signedUp(t, "ben@example.com")
	keyID, _ := ann.makeKey("mover")
	bensKey, _ := ben.makeKey("mover")
	const notConfigured = "This service has no provider of quotes for these chains. Give both amounts yourself."
	ben.post(confirmPath, bridge(bensKey, "sourceAmount", "1.5")...).is(http.StatusUnprocessableEntity).tied("destinationAmount", notConfigured)
	ben.post(confirmPath, bridge(bensKey, "destinationAmount", "1.5")...).is(http.StatusUnprocessableEntity).tied("sourceAmount", notConfigured)

	for _, c := range []struct {
		refuses int
		status  int
		wants   string
	}{
		{http.StatusForbidden, http.StatusNotFound, "No provider has a quote for this. Give the other amount instead, or both, or try again later."},
		{http.StatusInternalServerError, http.StatusServiceUnavailable, "No provider of quotes answers at this moment. Try again in a few seconds, or give both amounts yourself."},
	} {
		asked.SetAnswer(providertest.Status(c.refuses, ""))
		a := ann.post(confirmPath, bridge(keyID, "sourceAmount", "1.5")...).is(c.status)
		a.tied("destinationAmount", c.wants)
		if wait := retrytest.Least(c.status, a.header.Get("Retry-After"), "5"); (wait == "5") != (c.status == http.StatusServiceUnavailable) {
			t.Errorf("%d has Retry-After %q", c.status, wait)
		}
	}
	before := asked.Requests()
	ann.post(confirmPath, bridge(keyID, "sourceAmount", "1.5x")...).is(http.StatusBadRequest)
	ann.post(confirmPath, bridge(keyID, "sourceAmount", "1.5", "deadline", "120")...).is(http.StatusUnprocessableEntity).
		tied("deadline", "The deadline of a bridge from eip155:11155111 must be 246 seconds to 7 days from now.")
	ann.post(confirmPath, bridge(keyID, "sourceAmount", "1.5", "destinationChain", "eip155:421614", "destinationToken", "eip155:421614:0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d")...).
		is(http.StatusUnprocessableEntity).alerts("No settlement is configured on eip155:421614")
	ann.confirm(bridge(keyID, "sourceAmount", "1.5", "destinationAmount", "1.4"))
	for _, same := range []string{"", sepolia} {
		ann.confirm(payment(keyID, "destinationChain", same))
		ann.post(confirmPath, payment(keyID, "destinationChain", same, "sourceAmount", "", "destinationAmount", "1.5")...).is(http.StatusBadRequest).
			tied("sourceAmount", "The amount must be a number of USDC such as 1.5, in digits with at most one point.")
	}
	if n := elsewhere.Requests(); n != 0 {
		t.Errorf("%d requests of a provider that does not serve the route", n)
	}
	if n := asked.Requests(); n != before {
		t.Errorf("%d requests of a provider by forms that need no quote", n-before)
	}
}
