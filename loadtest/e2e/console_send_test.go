package e2e_test

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/ethereum/go-ethereum/common"

	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
)

// sendWalk is a person with a browser and a wallet who pays for intents from the console.
type sendWalk struct {
	*tab

	client   *chainClient
	email    string
	wallet   *testWallet
	from, to *evmChain
}

// walkSend has a wallet send intents from their pages, on real chains, and follows them there.
func walkSend(t *testing.T, stack *chainStack, from, to *evmChain) {
	t.Helper()
	b := openTab(chromium(t), t)
	b.base = stack.Env().GatewayURL
	email := uniqueEmail("payer")
	b.signUp(email)
	w := &sendWalk{tab: b, client: &chainClient{apiClient(t, b.base, b.makeKey("payer")), stack}, email: email, from: from, to: to, wallet: &testWallet{
		chains: map[uint64]*evmChain{from.ChainID: from, to.ChainID: to}, current: to.ChainID, added: []uint64{to.ChainID},
	}}
	system.Execute(t, stack.Env().DatabaseURL, `UPDATE api_keys SET limit_requests = 1000000 FROM accounts WHERE accounts.id = account_id AND email = $1`, email)
	unfilled := w.openUnfilled()

	r := w.bridge()
	b.open(w.pageOf(r), "Send with your wallet", "No wallet was found in this browser.")
	w.wallet.install(b)
	w.signInByWallet()
	w.refusals(r)
	w.oneAfterTheOther(r)
	w.twoTabs()
	w.inOneBatch()
	w.afterAReset()
	w.unfunded()
	w.reportedLater()
	w.refund(unfilled)
}

// signInByWallet links the wallet to the account and signs in with it, each once its user has declined.
func (w *sendWalk) signInByWallet() {
	w.t.Helper()
	sign := func(page, name, says string) {
		w.t.Helper()
		w.open(page)
		w.inspect(name)
		w.wallet.decline("personal_sign", 0)
		w.do(chromedp.Click(chromedp.CSS("[data-wallet] button")))
		w.shows("You declined in your wallet.")
		w.wallet.decline("", 0)
		w.click("[data-wallet] button", says)
	}
	sign("/console/account/link", "link", "It is linked: you can sign in with it from now on.")
	w.click(`form[action="/console/sign-out"] button`, "You are signed out.")
	sign("/console/sign-in?next=%2Fconsole%2Faccount", "sign-in-wallet", w.wallet.account.Hex())
	if got := w.path(); got != "/console/account" {
		w.t.Errorf("the wallet leads to %s", got)
	}
	w.open("/console/account/unlink?issuer=eip155&subject=" + strings.ToLower(w.wallet.account.Hex()))
	w.inspect("unlink")
	w.click("main button.danger")
}

func (w *sendWalk) pageOf(r *intents.Transfer) string { return "/console/transfers/" + r.ID }

// bridge records an intent from an account of its own.
func (w *sendWalk) bridge() *intents.Transfer {
	w.t.Helper()
	account := w.from.account(w.t)
	w.wallet.set(func() { w.wallet.account = account })
	return w.client.create(w.t, w.from.order(account, w.from.at(w.from.token.Address), w.to, w.to.at(w.to.token.Address)))
}

// send presses the wallet's button and waits until the page says this. The checks, which are loaded above it, move the button.
func (w *sendWalk) send(says string) {
	w.t.Helper()
	asynctest.Succeeds(w.t, func() error {
		loading, err := read[bool](w.tab, `document.querySelector("[data-preflight] a") !== null`)
		if err == nil && loading {
			err = errors.New("the checks are not there")
		}
		return err
	})
	w.do(chromedp.Click(chromedp.CSS("[data-wallets] button:not(:disabled)")))
	w.shows(says)
}

// shows waits until the page, which nobody touches, says this.
func (w *sendWalk) shows(says string) {
	w.t.Helper()
	asynctest.Succeeds(w.t, func() error {
		if said := w.text(); !strings.Contains(said, says) {
			return fmt.Errorf("the page says %q, want %q in it", said, says)
		}
		return nil
	})
}

// refusals are all that can go wrong before a wallet sends: the record stays as it was.
func (w *sendWalk) refusals(r *intents.Transfer) {
	t := w.t
	w.open(w.pageOf(r))
	w.shows("needed allowance The settler may draw 0 units of the token")
	w.inspect("send")

	t.Log("an account that is not the intent's")
	right := w.wallet.account
	w.wallet.set(func() { w.wallet.account = w.to.owner() })
	w.send("Only " + right.Hex() + " can send it")
	w.wallet.set(func() { w.wallet.account = right })

	w.unknownChain()

	t.Log("a chain that the user does not switch to, and a transaction that the user does not sign")
	for _, method := range []string{"wallet_switchEthereumChain", "eth_sendTransaction"} {
		w.wallet.decline(method, 0)
		w.send("You declined in the wallet; nothing was sent.")
		w.wallet.decline("", 0)
		w.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("send-says").textContent = ""`))
	}
	if kept := evaluate[int](w.tab, "localStorage.length"); kept != 0 {
		t.Errorf("the browser keeps %d things of transactions that were not sent", kept)
	}
	w.client.await(t, r.ID, "created")
}

// reported waits until the page says that the transaction is reported, and that it is confirmed once its blocks are there.
func (w *sendWalk) reported(r *intents.Transfer) {
	w.t.Helper()
	w.send("The transaction is reported.")
	if w.pageOf(r)+"?done=reported" != w.path() {
		w.t.Errorf("reporting leads to %s", w.path())
	}
	w.from.Mine(w.t, depth)
	w.shows("confirmed")
	w.client.wait(w.t, r.ID, intents.StatusConfirmed)
	if kept := evaluate[int](w.tab, "localStorage.length"); kept != 0 {
		w.t.Errorf("the browser keeps %d things of what is reported", kept)
	}
}

func (w *sendWalk) oneAfterTheOther(r *intents.Transfer) {
	w.t.Log("approve, then open")
	w.wallet.set(func() {})
	w.reported(r)
	if n := w.wallet.count("eth_sendTransaction"); n != 2 {
		w.t.Errorf("%d transactions instead of an approval and an open", n)
	}

	w.t.Log("approve, then decline to open, then open")
	r = w.bridge()
	w.open(w.pageOf(r))
	w.wallet.decline("eth_sendTransaction", 1)
	w.send("You declined in the wallet. Only the approval was sent; nothing was paid.")
	w.client.await(w.t, r.ID, "created")
	w.wallet.decline("", 0)
	w.reported(r)
}

func (w *sendWalk) inOneBatch() {
	t := w.t
	t.Log("approve and open in one request")
	r := w.bridge()
	w.open(w.pageOf(r))
	w.wallet.set(func() { w.wallet.batches = true })
	w.reported(r)
	if batches, single := w.wallet.count("wallet_sendCalls"), w.wallet.count("eth_sendTransaction"); batches != 1 || single != 0 {
		t.Errorf("%d batches and %d transactions instead of one batch", batches, single)
	}
	w.inspect("sent")

	t.Log("with an allowance in place there is nothing to approve")
	r = w.bridge()
	w.from.Execute(t, calls(t, r.Tx)[0])
	w.open(w.pageOf(r))
	w.reported(r)
	if batches, single := w.wallet.count("wallet_sendCalls"), w.wallet.count("eth_sendTransaction"); batches != 0 || single != 1 {
		t.Errorf("%d batches and %d transactions instead of one transaction", batches, single)
	}
}

// afterAReset sends intents whose token refuses to change an allowance, where one that is too small stands.
func (w *sendWalk) afterAReset() {
	t := w.t
	for _, batches := range []bool{false, true} {
		t.Log("reset, approve and open; in one request:", batches)
		account := w.from.account(t)
		r := w.client.create(t, w.from.order(account, w.from.at(w.from.tether.Address), w.to, w.to.at(w.to.token.Address)))
		w.from.Execute(t, w.from.tether.Transaction(t, account, "approve", w.from.input.Address, big.NewInt(1)))
		w.open(w.pageOf(r))
		w.shows("some tokens refuse to change an allowance that is not 0")
		w.wallet.set(func() { w.wallet.account, w.wallet.batches = account, batches })
		w.reported(r)
		want := map[bool][2]int{false: {0, 3}, true: {1, 0}}[batches]
		if got := [2]int{w.wallet.count("wallet_sendCalls"), w.wallet.count("eth_sendTransaction")}; got != want {
			t.Errorf("%d batches and %d transactions, want %d and %d", got[0], got[1], want[0], want[1])
		}
	}
}

// plain records a transfer of so many units.
func (w *sendWalk) plain(units string) *intents.Transfer {
	w.t.Helper()
	account := w.from.account(w.t)
	w.wallet.set(func() { w.wallet.account = account })
	request := w.from.payment(account, w.from.at(w.from.token.Address))
	request.Source.Amount = intents.Amount(units)
	return w.client.create(w.t, request)
}

func (w *sendWalk) unfunded() {
	t := w.t
	t.Log("more than the account has")
	r := w.plain(strconv.Itoa(tokens + 1))
	w.open(w.pageOf(r))
	w.shows("not ok balance")
	w.inspect("send-unfunded")
	w.send("The checks above say that it would fail: balance, simulation. Nothing was sent.")
	if n := w.wallet.count("eth_sendTransaction"); n != 0 {
		t.Errorf("the wallet was asked %d times", n)
	}
	w.open(w.pageOf(r)+"/preflight", "Before sending", "not ok balance")
	w.inspect("preflight")

	t.Log("a session that ends, and an intent that ends elsewhere, while the page is open")
	w.open(w.pageOf(r))
	endSessions(t, w.client.Env().DatabaseURL, w.email)
	w.send("Your session has ended. Load the page again and sign in. Nothing was sent.")
	w.open("/console")
	w.signIn(w.email, password)
	w.open(w.pageOf(r))
	w.shows("Send with Test Wallet")
	must(w.client.Transfers.Cancel(t.Context(), r.ID))(t)
	w.shows("Done. No action needed.")
	if hidden := evaluate[bool](w.tab, `document.querySelector("[data-wallets]").hidden`); !hidden {
		t.Error("a cancelled intent can be sent")
	}
}

// A hash that could not be reported is reported when the page is opened again.
func (w *sendWalk) reportedLater() {
	t := w.t
	t.Log("the service is not reached between sending and reporting")
	r := w.plain(sent)
	w.open(w.pageOf(r))
	w.loseReports()
	w.send("is sent, but could not be reported")
	w.client.await(t, r.ID, "created")
	w.open(w.pageOf(r))
	w.shows("The transaction is reported.")
	w.from.Mine(t, 2*depth)
	w.shows("Done. No action needed.")
	w.client.await(t, r.ID, "confirmed, send finalized")

	t.Log("the tab was closed before the wallet answered")
	r = w.plain(sent)
	w.open(w.pageOf(r))
	w.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`localStorage.setItem("transfer %s", JSON.stringify({asked: Date.now()}))`, r.ID)))
	w.open(w.pageOf(r))
	w.shows("its answer did not arrive. Look in the wallet: if it has sent a transaction, report its hash below")
	hash := w.from.sendCalls(t, r).Hash
	w.do(chromedp.Click(chromedp.CSS("main details summary")))
	w.fill("#hash", hash.Hex())
	w.click("[data-report] button", "The transaction is reported.", "submitted", hash.Hex())
}

// openUnfilled opens an order that nobody fills.
func (w *sendWalk) openUnfilled() *intents.Transfer {
	t := w.t
	account := w.from.account(t)
	request := w.from.order(account, w.from.at(w.from.token.Address), w.to, w.to.at(w.to.token.Address))
	request.Deadline = time.Now().Add(90 * time.Second)
	r := w.client.create(t, request)
	w.from.sendCalls(t, r)
	w.from.Mine(t, depth)
	w.client.wait(t, r.ID, intents.StatusConfirmed)
	return r
}

func (w *sendWalk) refund(r *intents.Transfer) {
	t := w.t
	t.Log("an order that nobody fills is refunded by the wallet, on its own chain, once it has expired")
	w.open(w.pageOf(r))
	w.from.PassTime(t, time.Unix(r.Order.Expires+1, 0))
	w.from.Mine(t, depth)
	w.shows("send the refund's transaction on " + w.from.name())
	w.wallet.set(func() { w.wallet.account = common.HexToAddress(r.Tx.From) })
	w.click(`a[href$="/refund"]`)
	w.inspect("refund")
	w.send("is in a block. The intent's page shows it")
	w.from.Mined(t, w.wallet.last())
	w.click(".crumb a")
	w.from.Mine(t, 2*depth)
	w.shows("Done. No action needed.")
	w.client.await(t, r.ID, "refunded, open finalized, refund finalized")
}
