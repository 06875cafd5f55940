package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
)

// The tokens of the local chains.
const (
	localUSDC = "0xE1620de3a36756143582895e7E426Ade69e4f2D7"
	localWETH = "0x1Fa5e93549a4c07583E8e20806E5249AB96D7321"
)

// walkQuotes asks the local solver what a swap brings, lets the quote run out, and records the swap with the next one. A bridge of one asset
// shows what it costs.
func (w *readmeWalk) walkQuotes(t *testing.T) {
	b := openTab(chromium(t), t)
	b.base = w.value("GATEWAY_URL")
	b.open("/console/sign-in")
	b.signIn(w.value("ACCOUNT_EMAIL"), w.value("ACCOUNT_PASSWORD"))
	b.click(testEnvironment, "Overview")

	t.Log("a swap, whose quote runs out")
	b.chooseChain(31337)
	b.fillTransfer(on(31337, localUSDC), "30", on(31337, localWETH), "")
	b.click(confirmButton, "Choose a quote", "local-solver", "0.00997 tWETH", "none stated", "5 seconds", "Nothing is recorded yet.")
	first := b.chosenQuote()
	b.countsDown()
	b.inspect("quotes")
	system.Execute(t, w.value("DATABASE_URL"), `UPDATE quotes SET expires_at = clock_timestamp() WHERE id = $1`, first)
	b.do(chromedp.Evaluate[chromedp.Void](`{ const now = Date.now; Date.now = () => now() + 60_000; }`)) // as if a minute had passed
	asynctest.Succeeds(t, func() error {
		if said := b.text(); !strings.Contains(said, "has run out") || !strings.Contains(said, "A quote has run out. If you go on with it, new ones are shown.") {
			return fmt.Errorf("the page says %q", said)
		}
		return nil
	})
	b.inspect("quotes-ended")
	b.click(confirmButton, "The quote that was chosen cannot be used any more. Nothing is recorded; these are new ones.", "local-solver")
	second := b.chosenQuote()
	if second == first {
		t.Error("the quote that ran out is offered again")
	}

	t.Log("the next one is confirmed and recorded")
	b.click(confirmButton, "Record this swap?", "Quote of", "local-solver", "9970000000000000", "before the quote expires")
	b.countsDown()
	b.inspect("confirm-quote")
	b.recordConfirmed()
	b.says("Swap of 30 tUSDC", "Quote of")
	intent, _, _ := strings.Cut(strings.TrimPrefix(b.path(), "/console/transfers/"), "?")
	swap := must(apiClient(t, b.base, w.value("TEST_KEY")).Transfers.Get(t.Context(), intent))(t)
	if swap.Quote.ID != second || swap.Destination.Amount != "9970000000000000" {
		t.Errorf("the intent is of %+v and brings %s, the quote that was chosen is %s", swap.Quote, swap.Destination.Amount, second)
	}

	t.Log("a bridge shows its fee")
	b.chooseChain(31337)
	b.fillTransfer(on(31337, localUSDC), "10", "", "")
	b.do(chromedp.SetValue(chromedp.CSS("#destinationChain"), "eip155:31338"))
	b.click(confirmForm + ` button[formmethod="get"]`)
	b.do(chromedp.SetValue(chromedp.CSS("#destinationToken"), on(31338, localUSDC)))
	b.click(confirmButton, "Choose a quote", "9.97 tUSDC", "total 0.03 tUSDC")
}

// value is that of a variable of the stack.
func (w *readmeWalk) value(name string) string {
	for _, line := range w.env {
		if value, found := strings.CutPrefix(line, name+"="); found {
			return value
		}
	}
	w.t.Fatalf("the stack has no %s", name)
	return ""
}

// chosenQuote is the id of the quote that is ticked.
func (b *tab) chosenQuote() string {
	b.t.Helper()
	return evaluate[string](b, `document.querySelector("input[name=quoteId]:checked").value`)
}

// countsDown waits until the page shows two times that a quote still holds, the second one shorter.
func (b *tab) countsDown() {
	b.t.Helper()
	var seen []int
	asynctest.Succeeds(b.t, func() error {
		shows, err := read[string](b, textOf("[role=timer]"))
		if err != nil {
			return err
		}
		var left int
		if _, err := fmt.Sscanf(shows, "%d s left", &left); err != nil {
			return fmt.Errorf("the timer shows %q", shows)
		}
		if seen = append(seen, left); left >= seen[0] {
			return errors.New("the timer stands still")
		}
		return nil
	})
}
