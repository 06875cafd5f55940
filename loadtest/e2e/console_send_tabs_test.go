package e2e_test

import (
	"fmt"

	"github.com/chromedp/chromedp"

	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
)

// unknownChain is a wallet without the chain: it is told what to do, or gets the chain where the registry has a public URL of it.
func (w *sendWalk) unknownChain() {
	t := w.t
	chain := fmt.Sprintf("%s (chain id %d)", w.from.name(), w.from.ChainID)
	t.Log("a chain that the wallet does not know and that has no public URL")
	w.send("The wallet does not know " + chain + ". Add the chain in the wallet first")
	if n := w.wallet.count("wallet_addEthereumChain"); n != 0 {
		t.Errorf("the wallet was asked %d times to add a chain without a URL", n)
	}

	list := map[string]any{"chains": []any{map[string]any{
		"chainId": w.from.name(), "name": w.from.name(), "environment": "test", "rpcUrls": []string{w.from.URL},
		"nativeCurrency": map[string]any{"name": "Ether", "symbol": "ETH", "decimals": 18},
	}}}
	mustCore(t, w.client.Stack, string(encode(t, list)), "chains", "import", "-")
	asynctest.Succeeds(t, func() error {
		has, err := read[bool](w.tab, `fetch(location.pathname).then((answer) => answer.text()).then((page) => page.includes("rpcUrls"))`)
		if err == nil && !has {
			err = fmt.Errorf("the page has no URL of %s", chain)
		}
		return err
	})

	t.Log("a chain that the user does not let the wallet add")
	w.wallet.decline("wallet_addEthereumChain", 0)
	w.send("You declined to add " + chain + ", which it does not know.")
	for _, own := range []bool{false, true} { // whether the wallet chooses what it adds, and wraps its errors
		t.Log("a chain that the wallet adds; chosen by itself:", own)
		w.wallet.set(func() {
			w.wallet.added, w.wallet.current, w.wallet.switches, w.wallet.wraps = []uint64{w.to.ChainID}, w.to.ChainID, own, own
			w.wallet.declines = "eth_sendTransaction"
		})
		w.send("You declined in the wallet; nothing was sent.")
		want := map[bool]int{false: 2, true: 1}[own]
		if added, switched := w.wallet.count("wallet_addEthereumChain"), w.wallet.count("wallet_switchEthereumChain"); added != 1 || switched != want {
			t.Errorf("the wallet was asked %d times to add the chain and %d times to switch, want 1 and %d", added, switched, want)
		}
		w.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("send-says").textContent = ""`))
	}
	w.wallet.set(func() { w.wallet.current, w.wallet.declines = w.to.ChainID, "" })
}

// anotherTab is a second window of the same browser, with the same wallet. closeTab closes it.
func (w *sendWalk) anotherTab(r *intents.Transfer) (other *sendWalk, closeTab func()) {
	w.t.Helper()
	ctx, cancel := chromedp.NewContext(w.ctx)
	w.t.Cleanup(cancel)
	second := *w
	second.tab = &tab{t: w.t, ctx: ctx, base: w.base, axe: w.axe}
	if err := chromedp.Listen(ctx, second.note); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		for _, fault := range second.taken() {
			w.t.Error(fault)
		}
	})
	w.wallet.install(second.tab)
	second.open(w.pageOf(r))
	return &second, cancel
}

// presses presses the wallet's button, wherever it is.
func (w *sendWalk) presses() {
	w.t.Helper()
	w.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("[data-wallets] button").click()`))
}

// Of two tabs with one intent only one pays.
func (w *sendWalk) twoTabs() {
	t := w.t
	t.Log("a tab sends while the other's wallet waits for its user")
	r := w.plain(sent)
	w.open(w.pageOf(r))
	other, closeTab := w.anotherTab(r)
	held := w.wallet.hold("eth_sendTransaction")
	w.presses()
	<-held.arrived
	other.send("It is being sent in another tab of this browser. Nothing was sent here.")
	other.inspect("send-other-tab")
	if n := w.wallet.count("eth_requestAccounts"); n != 1 {
		t.Errorf("the wallet was asked by %d tabs", n)
	}
	close(held.release)
	w.shows("The transaction is reported.")
	other.presses()
	other.shows("The intent is not to be paid any more: its status or deadline has changed. Nothing was sent.")
	w.sentOnce()

	t.Log("what a tab has sent and could not report, another one reports, which was open before")
	r = w.plain(sent)
	other.open(w.pageOf(r))
	w.open(w.pageOf(r))
	w.loseReports()
	w.send("is sent, but could not be reported")
	other.send("The transaction is reported.")
	w.sentOnce()

	t.Log("a tab is closed while its wallet waits for its user; the other one warns before it sends")
	r = w.plain(sent)
	other.open(w.pageOf(r))
	w.open(w.pageOf(r))
	held = w.wallet.hold("eth_sendTransaction")
	other.presses()
	<-held.arrived
	closeTab()
	// The browser tells its other processes of the lock and of the note each at a time of its own.
	asynctest.Eventually(t, "the closed tab's lock is released, and its note is there", func() bool {
		return evaluate[bool](w.tab, fmt.Sprintf(`navigator.locks.query().then(({ held }) => held.length === 0 && localStorage.getItem("transfer %s") !== null)`, r.ID))
	})
	w.send("and its answer did not arrive. Look in the wallet")
	w.sentOnce()
	w.wallet.set(func() { w.wallet.held, w.wallet.declines = nil, "eth_sendTransaction" })
	w.send("You declined in the wallet; nothing was sent.")
	if kept := evaluate[int](w.tab, "localStorage.length"); kept != 1 {
		t.Errorf("the browser keeps %d things of the request without an answer", kept)
	}
	w.wallet.decline("", 0)
	w.send("The transaction is reported.")
}

// sentOnce expects one transaction since the wallet was changed last.
func (w *sendWalk) sentOnce() {
	w.t.Helper()
	if n := w.wallet.count("eth_sendTransaction"); n != 1 {
		w.t.Errorf("the wallet was asked for %d transactions, want 1", n)
	}
}

// loseReports lets no report of a hash reach the service.
func (b *tab) loseReports() {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`{
		const whole = window.fetch;
		window.fetch = (url, ...rest) => String(url).endsWith("/transaction") ? Promise.reject(new TypeError("no network")) : whole(url, ...rest);
	}`))
}
