package e2e_test

import (
	"net/http"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// changePassword goes from the account's page to that of its password, and gives it the one it has.
func changePassword(b *tab) {
	b.t.Helper()
	b.click(`main dd a[href="/console/account/password"]`, http.StatusOK)
	b.inspect("password")
	b.fill("#password", "a wrong password")
	b.fill("#newPassword", consolePassword)
	b.click("main form button", http.StatusBadRequest)
	b.says("The password is wrong.")
	b.inspect("password-wrong")
	b.fill("#password", consolePassword)
	b.fill("#newPassword", consolePassword)
	b.click("main form button", http.StatusOK)
	b.says("The password is changed, and all other sessions are ended.")
}

// resetWithoutScripts is walkReset without scripts, and without a look at each page, which takes one.
func resetWithoutScripts(b *tab) {
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		b.t.Fatal(err)
	}
	walkReset(b, func(string) {})
}

// walkReset goes from the sign-in page to a new password, by a mail.
func walkReset(b *tab, inspect func(name string)) {
	t := b.t
	somebody := newPerson(t, running.Env().GatewayURL)
	b.open("/console/sign-in", http.StatusOK)
	b.click(`main a[href="/console/forgot-password"]`, http.StatusOK)
	inspect("forgot-password")
	b.fill("#email", "nobody")
	b.click("main form button", http.StatusBadRequest)
	inspect("forgot-password-wrong")
	b.fill("#email", somebody.email)
	b.click("main form button", http.StatusOK)
	b.says("a mail with a link is on its way to it.")
	inspect("forgot-password-sent")

	link := mailedLink(t, somebody.email)
	b.open(link.RequestURI(), http.StatusOK)
	inspect("reset-password")
	b.fill("#newPassword", "short")
	b.click("main form button", http.StatusBadRequest)
	b.says("The new password must have 8 to 128 characters.")
	b.fill("#newPassword", "staple correct horse")
	b.click("main form button", http.StatusOK)
	b.says("The password is changed. Sign in with it")
	b.fill("#email", somebody.email)
	b.fill("#password", "staple correct horse")
	b.click("main form button", http.StatusOK)
	b.says("API keys")

	b.open(link.RequestURI(), http.StatusOK)
	b.fill("#newPassword", "another password")
	b.click("main form button", http.StatusBadRequest)
	b.says("The link was used, has expired or is not complete.")
	inspect("reset-password-used")
	if a := somebody.do(http.MethodGet, "/auth/get-session", nil); string(a.Body) != "null" {
		t.Errorf("a session outlives the reset: %s", a.Body)
	}
}
