package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// importSettlements configures a deployment on OP Sepolia and Arbitrum Sepolia, and so bridges between them.
func importSettlements(t *testing.T) {
	t.Helper()
	mustCore(t, shared.Stack, fmt.Sprintf(`{"chains":[
		{"chainId":"eip155:%d","name":"OP Sepolia","environment":"test","nativeCurrency":{"name":"Sepolia Ether","symbol":"ETH","decimals":18},
		 "settlements":[%s]},
		{"chainId":"eip155:%d","name":"Arbitrum Sepolia","environment":"test","nativeCurrency":{"name":"Arbitrum Sepolia Ether","symbol":"ETH","decimals":18},
		 "settlements":[%s]}]}`, optimism, settlement, arbitrum, settlement), "chains", "import", "-")
}

const (
	confirmForm   = `form[action^="/console/transfers/new/confirm?"]`
	confirmButton = confirmForm + ` p.actions button`
)

// chooseChain opens the form and goes to its second step, for intents that stay on one chain.
func (b *tab) chooseChain(from int) {
	b.t.Helper()
	b.open("/console/transfers/new")
	b.do(chromedp.SetValue(chromedp.CSS("#sourceChain"), fmt.Sprintf("eip155:%d", from)))
	b.click("main form button")
}

// fillTransfer fills in a form from Alice to Bob; empty parts stay as they are.
func (b *tab) fillTransfer(token, amount, toToken, least string) {
	b.t.Helper()
	b.fill("#sourceAccount", alice)
	b.do(chromedp.SetValue(chromedp.CSS("#sourceToken"), token))
	b.fill("#sourceAmount", amount, "#destinationAccount", bob)
	if toToken != "" {
		b.do(chromedp.SetValue(chromedp.CSS("#destinationToken"), toToken))
	}
	if least != "" {
		b.fill("#destinationAmount", least)
	}
}

// recordConfirmed presses the button of the confirm page and expects the page of the intent.
func (b *tab) recordConfirmed() {
	b.t.Helper()
	b.click(`form[action*="/record?"] button`, "The intent is recorded.", "Timeline", "created")
}

// walkNewTransfers records a transfer and a bridge.
func walkNewTransfers(b *tab) {
	t := b.t
	importSettlements(t)
	b.signUp(uniqueEmail("new-transfer"))
	b.open("/console/transfers", "There are no test transfers yet.")
	b.click(`main a[href="/console/transfers/new"]`, "You have no enabled test key.")
	b.inspect("new-transfer-no-key")
	tester := apiClient(t, b.base, b.makeKey("Transfers"))
	create(t, tester, body(on(optimism, alice), on(optimism, usdcOnOptimism), "1", on(arbitrum, bob), on(arbitrum, usdcOnArbitrum), "1"))
	b.open("/console/transfers/new", "Choose a chain")
	b.inspect("new-transfer-chains")

	t.Log("a transfer; faults stand beside their fields, and what was typed stays")
	b.chooseChain(optimism)
	b.inspect("new-transfer")
	b.showsUnits()
	b.fillTransfer(on(optimism, usdcOnOptimism), "1.50000001", "", "")
	b.clickRefused(confirmButton, http.StatusBadRequest, "The amount has more decimal places than the 6 of USDC.")
	b.hasFocus("problems")
	b.inspect("new-transfer-fault")
	if got := b.of("#sourceAmount-units"); got != "More decimal places than the 6 of USDC" {
		t.Errorf("the amount is shown as %q", got)
	}
	b.fill("#sourceAmount", "1.5 USDC")
	b.click(confirmButton, "Record this transfer?", "It is a transfer", "1.5 USDC", "1500000")
	b.inspect("confirm-transfer")

	t.Log("a copy of the form that arrived before leads to the same intent")
	first := evaluate[string](b, `(async () => {
		const form = document.querySelector('form[action*="/record?"]');
		const answer = await fetch(form.action, {method: "POST", body: new URLSearchParams(new FormData(form))});
		return new URL(answer.url).pathname;
	})()`)
	b.recordConfirmed()
	b.says("Transfer of 1.5 USDC")
	if page := evaluate[string](b, "location.pathname"); page != first || !strings.HasPrefix(page, "/console/transfers/") {
		t.Errorf("sent twice it leads to %s and %s", first, page)
	}

	t.Log("a bridge, whose chain is chosen in the form")
	b.chooseChain(optimism)
	b.fillTransfer(on(optimism, usdcOnOptimism), "3", "", "2.99")
	b.do(chromedp.SetValue(chromedp.CSS("#destinationChain"), fmt.Sprintf("eip155:%d", arbitrum)))
	b.click(confirmForm+` button[formmethod="get"]`, "To Arbitrum Sepolia")
	if got := evaluate[string](b, `document.querySelector("#sourceAmount").value`); got != "3" {
		t.Errorf("the amount is %q once the chain is changed", got)
	}
	b.do(chromedp.SetValue(chromedp.CSS("#destinationToken"), on(arbitrum, usdcOnArbitrum)))
	b.click(confirmButton, "Record this bridge?", "2.99 USDC", "2990000", "Input settler")
	b.inspect("confirm-bridge")
	b.recordConfirmed()
	b.says("Bridge of 3 USDC", "Arbitrum Sepolia")

	t.Log("the chains with the most tokens")
	b.open("/console/keys")
	b.fill("#name", "Live")
	b.do(chromedp.SetValue(chromedp.CSS("#environment"), "live"))
	b.click("main form button")
	b.open("/console/transfers/new?environment=live&sourceChain=eip155:1&destinationChain=eip155:8453", "From Ethereum", "To Base")
	if options := evaluate[int](b, `document.querySelectorAll("optgroup option").length`); options < 700 {
		t.Errorf("%d tokens to choose from", options)
	}
	b.inspect("new-transfer-live")
}

// showsUnits types amounts, which are shown in the smallest unit of their token.
func (b *tab) showsUnits() {
	b.t.Helper()
	set := func(selector, value string) {
		b.t.Helper()
		evaluate[bool](b, fmt.Sprintf(`(() => {
			const field = document.querySelector(%q);
			field.value = %q;
			return field.dispatchEvent(new Event("input", {bubbles: true}));
		})()`, selector, value))
	}
	const largest = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	const unit, none, places = " in the smallest unit of USDC", "Not a number of USDC such as 1.5", "More decimal places than the 6 of USDC"
	set("#sourceToken", on(optimism, usdcOnOptimism))
	for typed, want := range map[string]string{
		"": "", " ": "", "1.5": "1500000" + unit, " 1.5 usdc ": "1500000" + unit, "1.": "1000000" + unit, ".000001": "1" + unit, "0": "0" + unit,
		"0.1234560": "123456" + unit, "90071992547.409931": "90071992547409931" + unit, "00001": "1000000" + unit,
		".": none, "1e3": none, "-1": none, "1,5": none, "1.2.3": none, "0x1": none, "USDC": none, "1 WETH": none, "١": none,
		"0.0000001": places, largest[:72] + ".639935": largest + unit, largest[:72] + ".639936": "More than a token amount can be",
	} {
		set("#sourceAmount", typed)
		if got := b.of("#sourceAmount-units"); got != want {
			b.t.Errorf("%q is shown as %q, want %q", typed, got, want)
		}
	}
	set("#destinationAmount", "2")
	set("#destinationToken", on(optimism, wethOnOptimism))
	if got := b.of("#destinationAmount-units"); got != "2000000000000000000 in the smallest unit of WETH" {
		b.t.Errorf("2 WETH are shown as %q", got)
	}
	b.inspect("new-transfer-units")
	for _, field := range []string{"#sourceToken", "#destinationToken", "#sourceAmount", "#destinationAmount"} {
		set(field, "")
	}
}
