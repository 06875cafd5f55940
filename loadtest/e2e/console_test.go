package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
)

// The console in a real browser, through a gateway: one journey a subtest, each in a window that knows nothing of the others.
func TestConsole(t *testing.T) {
	journey(t)
	t.Parallel()
	for name, journeys := range map[string][]struct {
		name string
		walk func(*tab)
	}{
		"keys":    {{"lifecycle", walkKeys}, {"field errors", walkFaults}},
		"account": {{"account", walkAccount}, {"webhooks", walkWebhooks}, {"new intents", walkNewTransfers}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			browser := chromium(t)
			for _, journey := range journeys {
				t.Run(journey.name, func(t *testing.T) { journey.walk(openTab(browser, t)) })
			}
		})
	}
}

func walkKeys(b *tab) {
	t := b.t
	email := uniqueEmail("console")
	b.open("/console", "Sign in")
	b.inspect("sign-in")
	b.open("/console/sign-up")
	b.inspect("sign-up")
	b.signUp(email)
	b.says("You have no keys yet.")
	b.inspect("overview-none")
	b.open("/console/keys", "You have no test keys yet.")
	b.inspect("keys-none")

	t.Log("make a key, copy it, try the command that the page shows")
	first := b.makeKey("First key")
	b.inspect("new-key")
	b.do(chromedp.Click(chromedp.CSS(`[data-copy="key"]`)))
	asynctest.Succeeds(t, func() error {
		said, err := read[string](b, textOf("#key-copied"))
		if err == nil && said == "" {
			err = errors.New("the copy button says nothing")
		}
		return err
	})
	tryCurl(t, b.of("#curl"), first)

	t.Log("its requests appear on its page, which keeps up by itself")
	b.click("main .actions a")
	keyPage := b.path()
	b.tells("#hour-summary", "1 accepted")
	b.says("ago", "of 50 left")
	b.inspect("key")

	t.Log("intents: the list, a filter, one of them")
	must(apiClient(t, b.base, first).Transfers.Create(t.Context(), payment("1500000")))(t)
	b.open("/console/transfers", "transfer", "created", "Sepolia")
	b.inspect("transfers")
	b.do(chromedp.SetValue(chromedp.CSS("#status"), "failed"))
	b.click("main form button", "No transfers match these filters.")
	b.open("/console/transfers")
	b.click("tbody a", "Transfer of 1.5 USDC", "Timeline", "Transaction to sign", "inputOracle")
	b.inspect("transfer")

	t.Log("a batch: its page, the list of its intents, one of them and back")
	one := payment("2500000")
	item := intents.BatchItem{Source: *one.Source, Destination: *one.Destination}
	batch := must(apiClient(t, b.base, first).Batches.Create(t.Context(), intents.CreateBatch{Transfers: []intents.BatchItem{item, item}}))(t)[0]
	b.open("/console/batches/"+batch.ID, "Batch of 2 transfers", "created")
	b.inspect("batch")
	b.click(`dl a[href*="status=created"]`, "2.5 USDC", "Clear the filters")
	b.inspect("transfers-of-batch")
	b.click("tbody a", "Transfer of 2.5 USDC", batch.ID)
	b.inspect("transfer-of-batch")
	b.click(`dl a[href^="/console/batches/"]`, "Batch of 2 transfers")

	t.Log("rotate: the new key works, the old one dies")
	b.open(keyPage)
	b.click(`form[action$="/rotate"] button`, "Your key was rotated", "is refused from now on")
	second := b.of("#key")
	b.inspect("rotated-key")
	awaitStatus(t, second, http.StatusOK)
	awaitStatus(t, first, http.StatusForbidden)

	t.Log("rename, with a name that would be a script elsewhere; disable")
	const odd = `<img src=x onerror=alert(1)> & "co"`
	b.click("main .actions a")
	b.fill("#name", odd)
	b.click(`form[action$="/rename"] button`)
	if got := b.of("h1"); got != odd {
		t.Errorf("the key is called %q, want %q", got, odd)
	}
	b.click(`form[action$="/disable"] button`, "The key is disabled.", "Enable the key")
	awaitStatus(t, second, http.StatusForbidden)
	b.open("/console/keys", odd, "Disabled")
	b.inspect("keys")

	t.Log("delete, once it is confirmed")
	b.click("tbody a")
	b.click("a.danger", "Delete this key?", odd)
	b.inspect("delete-key")
	b.click("button.danger", "The key is deleted.", "You have no test keys yet.")

	t.Log("the audit log has it all; a session that has ended")
	b.open("/console/audit", "Signed up", "Signed in", "Key created", "Key rotated", "Key changed", "Key deleted", odd)
	b.inspect("audit")
	b.open("/console/search?q=0x12", "Nothing was found in this account.")
	b.inspect("search")
	b.open("/console/account")
	b.inspect("account")
	shareAccount(b)
	b.open("/console/keys")
	endSessions(t, shared.Stack.Env().DatabaseURL, email)
	b.fill("#name", "too late")
	b.click("main form button", "Your session has ended.")
	b.signIn(email, password)
	if got := b.path(); got != "/console" {
		t.Errorf("signing in again leads to %s", got)
	}
}

// shareAccount makes a shared account, invites somebody to it, and goes back to the own one.
func shareAccount(b *tab) {
	b.t.Helper()
	b.open("/console/accounts", "Your accounts", "Current account")
	b.inspect("accounts")
	b.fill("#name", "Analytical Engines")
	b.click("main form.card button", "The account is made", "working in Analytical Engines as owner")
	invited := uniqueEmail("invited")
	b.fill("#email", invited)
	b.click(`form[action*="/members/invite?"] button`, "The invitation is on its way", invited)
	b.inspect("members")
	b.open("/console/accounts")
	b.click(`form[action$="/act"] button`, "You have switched to this account.")
	b.open(mailedLink(b.t, invited).RequestURI(), "You are invited", "You are signed in with another address")
	b.inspect("invitation")
}

// endSessions lets the time of an account's sessions run out.
func endSessions(t *testing.T, databaseURL, email string) {
	t.Helper()
	system.Execute(t, databaseURL, `UPDATE sessions SET expires_at = now() - interval '1 second' FROM accounts WHERE accounts.id = account_id AND email = $1`, email)
}

var curlCommand = regexp.MustCompile(`^curl -H 'x-api-key: (\S+)' (http\S+)$`)

// tryCurl makes the request that a curl command would.
func tryCurl(t *testing.T, command, key string) {
	t.Helper()
	parts := curlCommand.FindStringSubmatch(command)
	if parts == nil || parts[1] != key {
		t.Fatalf("the command is %q", command)
	}
	c := system.NewClient(t, parts[2], "")
	c.Key = key
	if a := c.Do(http.MethodGet, "", nil); a.Status != http.StatusOK {
		t.Fatalf("%s: %d", command, a.Status)
	}
}

// awaitStatus asks with a key until it is answered with this status.
func awaitStatus(t *testing.T, key string, status int) {
	t.Helper()
	c := rawClient(t, shared.Stack.Env().GatewayURL, key)
	asynctest.Succeeds(t, func() error {
		if a := c.Do(http.MethodGet, "/v2/chains", nil); a.Status != status {
			return fmt.Errorf("still %d %s, want %d", a.Status, a.Body, status)
		}
		return nil
	})
}

// walkFaults makes mistakes in forms: each stands at its field, the summary has the focus, and what was typed is still there.
func walkFaults(b *tab) {
	t := b.t
	b.open("/console/sign-up")
	b.fill("#email", "not an address", "#password", password)
	b.clickRefused("main form button", http.StatusBadRequest,
		"There is a problem", "E-mail address must be an e-mail address such as name@example.com.")
	if describes := evaluate[string](b, `document.getElementById(document.querySelector("#email").getAttribute("aria-describedby")).textContent`); !strings.Contains(describes, "must be an e-mail address") {
		t.Errorf("the field is described by %q", describes)
	}
	b.hasFocus("problems")
	if got := evaluate[string](b, `document.querySelector("#email").value`); got != "not an address" {
		t.Errorf("the field holds %q", got)
	}
	b.inspect("sign-up-fault")

	t.Log("with the keyboard: the first stop skips to the content")
	b.do(chromedp.Navigate(b.base+"/console/sign-in"), chromedp.KeyEvent("\t"))
	b.hasFocus("skip")
	b.do(chromedp.KeyEvent("\r"), chromedp.KeyEvent("\t"))
	if got := evaluate[string](b, "document.activeElement.id"); got != "email" {
		t.Errorf("the first stop in the content is %q", got)
	}
	if evaluate[bool](b, `!document.querySelector("[data-wallet]").hidden`) {
		t.Error("wallets are offered where there is none")
	}
	b.openRefused("/console/nothing", http.StatusNotFound)
	b.inspect("not-found")
}
