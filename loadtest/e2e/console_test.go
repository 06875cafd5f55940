package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"
)

const consolePassword = "correct horse battery"

// The console in a real browser, through a gateway. Its parts run in parallel, each in a browser of its own: the last mostly waits for
// chains. All other tests wait for them, as browsers take every core and other tests watch the clock.
func TestConsole(t *testing.T) {
	t.Run("keys", func(t *testing.T) { t.Parallel(); walkKeys(t) })
	t.Run("pages", func(t *testing.T) { t.Parallel(); walkPages(t) })
	t.Run("send", func(t *testing.T) { t.Parallel(); walkSend(t) })
}

func walkKeys(t *testing.T) {
	t.Helper()
	browser := chromium(t)
	t.Run("key lifecycle", func(t *testing.T) { walkConsole(openTab(browser, t)) })
	t.Run("field errors", func(t *testing.T) { faultyForms(openTab(browser, t)) })
	t.Run("forms from another site", func(t *testing.T) { formFromElsewhere(openTab(browser, t)) })
	t.Run("checks of the pages", func(t *testing.T) { watchTheWatch(openTab(browser, t)) })
}

func walkPages(t *testing.T) {
	t.Helper()
	browser := chromium(t)
	t.Run("console without scripts", func(t *testing.T) { walkWithoutScripts(openTab(browser, t)) })
	t.Run("password reset", func(t *testing.T) { b := openTab(browser, t); walkReset(b, b.inspect) })
	t.Run("password reset without scripts", func(t *testing.T) { resetWithoutScripts(openTab(browser, t)) })
	t.Run("email verification and change", func(t *testing.T) { b := openTab(browser, t); walkAddress(b, b.inspect) })
	t.Run("email verification and change without scripts", func(t *testing.T) { addressWithoutScripts(openTab(browser, t)) })
	t.Run("webhook lifecycle", func(t *testing.T) { walkWebhooks(openTab(browser, t)) })
	t.Run("webhooks without scripts", func(t *testing.T) { webhooksWithoutScripts(openTab(browser, t)) })
	t.Run("new intents", func(t *testing.T) { walkNewTransfer(openTab(browser, t)) })
	t.Run("new intent without scripts", func(t *testing.T) { newTransferWithoutScripts(openTab(browser, t)) })
	t.Run("wallet sign-in", func(t *testing.T) { signInWithWallet(openTab(browser, t)) })
}

func uniqueEmail(who string) string {
	return fmt.Sprintf("%s-%d@example.com", who, time.Now().UnixNano())
}

func walkConsole(b *tab) {
	t := b.t
	email := uniqueEmail("console")
	b.open("/console", http.StatusOK)
	b.says("Sign in")
	b.inspect("sign-in")
	b.open("/console/sign-up", http.StatusOK)
	b.inspect("sign-up")
	b.signUp(email)
	b.says("You have no keys yet.")
	b.inspect("keys-none")

	t.Log("make a key, copy it, try the command that the page shows")
	first := b.makeKey("First key")
	b.inspect("new-key")
	b.do(chromedp.Click(chromedp.CSS(`[data-copy="key"]`)))
	eventually(t, func() error {
		if said := b.of("#key-copied"); said == "" {
			return errors.New("the copy button says nothing")
		}
		return nil
	})
	tryCurl(t, b.of("#curl"), first)

	t.Log("its requests appear on its page, which keeps up by itself")
	b.click("main .actions a", http.StatusOK)
	keyPage := b.path()
	eventually(t, func() error {
		if said := b.of("#hour-summary"); !strings.Contains(said, "1 accepted") {
			return fmt.Errorf("the page says %q", said)
		}
		return nil
	})
	b.says("ago", "of 50 left")
	b.inspect("key")

	t.Log("intents: the list, a filter, one of them")
	tester := apiClient(t, first)
	expect[record](t, tester.do(http.MethodPost, "/v2/transfers", body(on(11155111, alice), on(11155111, usdc), "1500000", on(11155111, bob), "", "")), 201)
	b.open("/console/transfers", http.StatusOK)
	b.says("transfer", "created", "Sepolia")
	b.inspect("transfers")
	b.do(chromedp.SetValue(chromedp.CSS("#status"), "failed"))
	b.click("main form button", http.StatusOK)
	b.says("No transfer is like that.")
	b.open("/console/transfers", http.StatusOK)
	b.click("tbody a", http.StatusOK)
	b.says("Transfer of 1.5 USDC", "Timeline", "Transaction to sign", "senderNonce")
	b.inspect("transfer")

	t.Log("rotate: the new key works, the old one dies")
	b.open(keyPage, http.StatusOK)
	b.click(`form[action$="/rotate"] button`, http.StatusOK)
	b.says("Your key was rotated", "is refused from now on")
	second := b.of("#key")
	b.inspect("rotated-key")
	awaitStatus(t, second, http.StatusOK)
	awaitStatus(t, first, http.StatusForbidden)

	t.Log("rename, with a name that would be a script elsewhere; disable")
	const odd = `<img src=x onerror=alert(1)> & "co"`
	b.click("main .actions a", http.StatusOK)
	b.fill("#name", odd)
	b.click(`form[action$="/rename"] button`, http.StatusOK)
	if got := b.of("h1"); got != odd {
		t.Errorf("the key is called %q, want %q", got, odd)
	}
	b.click(`form[action$="/disable"] button`, http.StatusOK)
	b.says("The key is disabled.", "Enable the key")
	awaitStatus(t, second, http.StatusForbidden)
	b.open("/console", http.StatusOK)
	b.says(odd, "Disabled")
	b.inspect("keys")

	t.Log("delete, once it is confirmed")
	b.click("tbody a", http.StatusOK)
	b.click("a.danger", http.StatusOK)
	b.says("Delete this key?", odd)
	b.inspect("delete-key")
	b.click("button.danger", http.StatusOK)
	b.says("The key is deleted.", "You have no keys yet.")

	t.Log("the audit log has it all; sign out; a session that has ended")
	b.open("/console/audit", http.StatusOK)
	b.says("Signed up", "Signed in", "Key created", "Key rotated", "Key changed", "Key deleted", odd)
	b.inspect("audit")
	b.open("/console/account", http.StatusOK)
	b.inspect("account")
	sharesAccount(b)
	changePassword(b)
	b.click("header button", http.StatusOK)
	b.says("You are signed out.")
	signIn(b, email)
	endSessions(t, email)
	b.fill("#name", "too late")
	b.click("main form button", http.StatusOK)
	b.says("Your session has ended.")
	signIn(b, email)
	if got := b.path(); got != "/console" {
		t.Errorf("signing in again leads to %s", got)
	}
}

// sharesAccount makes a shared account, invites somebody to it, and goes back to the own one.
func sharesAccount(b *tab) {
	b.t.Helper()
	b.open("/console/accounts", http.StatusOK)
	b.says("Your accounts", "Acting on it")
	b.inspect("accounts")
	b.fill("#name", "Analytical Engines")
	b.click("main form.card button", http.StatusOK)
	b.says("The account is made", "acting on Analytical Engines as owner")
	invited := uniqueEmail("invited")
	b.fill("#email", invited)
	b.click(`form[action*="/members/invite?"] button`, http.StatusOK)
	b.says("The invitation is on its way", invited)
	b.inspect("members")
	b.open("/console/accounts", http.StatusOK)
	b.click(`form[action$="/act"] button`, http.StatusOK)
	b.says("You act on this account from now on.")
	b.open(mailedLink(b.t, invited).RequestURI(), http.StatusOK)
	b.says("You are invited", "You are signed in with another address")
	b.inspect("invitation")
	b.open("/console/account", http.StatusOK)
}

func signIn(b *tab, email string) {
	b.t.Helper()
	b.fill("#email", email)
	b.fill("#password", consolePassword)
	b.click("main form button", http.StatusOK)
	b.says("API keys")
}

// endSessions lets the time of an account's sessions run out.
func endSessions(t *testing.T, email string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), running.Env().DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	ended, err := conn.Exec(t.Context(), `UPDATE sessions SET expires_at = now() - interval '1 second' FROM accounts WHERE accounts.id = account_id AND email = $1`, email)
	if err != nil || ended.RowsAffected() == 0 {
		t.Fatalf("end the sessions: %d, %v", ended.RowsAffected(), err)
	}
}

var curlCommand = regexp.MustCompile(`^curl -H 'x-api-key: (\S+)' (http\S+)$`)

// tryCurl makes the request that a curl command would.
func tryCurl(t *testing.T, command, key string) {
	t.Helper()
	parts := curlCommand.FindStringSubmatch(command)
	if parts == nil || parts[1] != key {
		t.Fatalf("the command is %q", command)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, parts[2], nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", parts[1])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", command, response.Status)
	}
}

// awaitStatus asks with a key until it is answered with this status.
func awaitStatus(t *testing.T, key string, status int) {
	t.Helper()
	c := apiClient(t, key)
	eventually(t, func() error {
		if a := c.do(http.MethodGet, "/v2/chains", nil); a.Status != status {
			return fmt.Errorf("still %d %s, want %d", a.Status, a.Body, status)
		}
		return nil
	})
}

func walkWithoutScripts(b *tab) {
	t := b.t
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	email := uniqueEmail("plain")
	b.signUp(email)
	first := b.makeKey("Plain")
	if hidden := evaluate[bool](b, `Array.from(document.querySelectorAll("[data-copy]")).every(button => button.hidden)`); !hidden {
		t.Error("a copy button shows that would do nothing")
	}
	b.picture("new-key-without-scripts")
	awaitStatus(t, first, http.StatusOK)
	b.click("main .actions a", http.StatusOK)
	b.fill("#name", "Renamed")
	b.click(`form[action$="/rename"] button`, http.StatusOK)
	b.says("The key is renamed.")
	b.do(chromedp.SetValue(chromedp.CSS("#gracePeriod"), "3600"))
	b.click(`form[action$="/rotate"] button`, http.StatusOK)
	b.says("works for 60 minutes more")
	second := b.of("#key")
	awaitStatus(t, second, http.StatusOK)
	awaitStatus(t, first, http.StatusOK)
	b.click("main .actions a", http.StatusOK)
	b.click("a.danger", http.StatusOK)
	b.click("button.danger", http.StatusOK)
	b.says("The key is deleted.", "Rotated out")
	awaitStatus(t, second, http.StatusForbidden)
	b.open("/console/account", http.StatusOK)
	b.fill("#password", consolePassword)
	b.click("button.danger", http.StatusOK)
	b.says("Your account is deleted")
	awaitStatus(t, first, http.StatusForbidden)
}

// watchTheWatch does what no page does, so that it shows whether anybody would notice.
func watchTheWatch(b *tab) {
	t := b.t
	b.open("/console/sign-in", http.StatusOK)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("h1").append(Object.assign(new Image(), {src: document.querySelector("img").src}))`))
	if found := b.violations(everyRule); b.axe != "" && (len(found) != 1 || !strings.Contains(found[0], "image-alt")) {
		t.Errorf("axe found %q", found)
	}
	for script, want := range map[string]string{
		`document.body.append(Object.assign(new Image(), {src: "http://elsewhere.invalid/x.png"}))`:        "Content Security Policy",
		`document.body.append(Object.assign(document.createElement("script"), {textContent: "alert(1)"}))`: "Content Security Policy",
		`console.error("oh no")`: "console.error",
	} {
		b.do(chromedp.Evaluate[chromedp.Void](script))
		eventually(t, func() error {
			if all := strings.Join(b.taken(), "\n"); !strings.Contains(all, want) {
				return fmt.Errorf("%s: noticed %q", script, all)
			}
			return nil
		})
	}
}
