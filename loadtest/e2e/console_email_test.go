package e2e_test

import (
	"net/http"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// addressWithoutScripts is walkAddress without scripts, and without a look at each page, which takes one.
func addressWithoutScripts(b *tab) {
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		b.t.Fatal(err)
	}
	walkAddress(b, func(string) {})
}

// walkAddress goes from sign-up over the mailed link to another address, which the old one and the new one confirm.
func walkAddress(b *tab, inspect func(name string)) {
	t := b.t
	email := uniqueEmail("address")
	b.open("/console/sign-up", http.StatusOK)
	b.fill("#email", email)
	b.fill("#password", consolePassword)
	b.click("main form button", http.StatusOK)
	b.says("Look at your mail")
	inspect("sign-up-sent")
	b.open("/console/sign-in", http.StatusOK)
	b.fill("#email", email)
	b.fill("#password", consolePassword)
	first := mailedLink(t, email)
	b.click("main form button", http.StatusUnauthorized)
	b.says("open the link in your mail first")
	inspect("sign-in-unverified")

	b.open(first.RequestURI(), http.StatusOK)
	inspect("verify-email")
	b.fill("#password", "a wrong password")
	b.click("main form button", http.StatusBadRequest)
	inspect("verify-email-wrong")
	b.fill("#password", consolePassword)
	b.click("main form button", http.StatusOK)
	b.says("Your address is verified.", "Verified")
	b.open(first.RequestURI(), http.StatusUnauthorized)
	b.says("The link was used, has expired or is not complete.")
	inspect("verify-email-used")

	newEmail := "new-" + email
	b.open("/console/account", http.StatusOK)
	b.click(`main dd a[href="/console/account/email"]`, http.StatusOK)
	inspect("email")
	b.fill("#newEmail", email)
	b.click("main form button", http.StatusBadRequest)
	b.says("The new address is the address that the account has.")
	inspect("email-wrong")
	b.fill("#newEmail", newEmail)
	b.click("main form button", http.StatusOK)
	b.says("A mail with a link is on its way.")
	b.open(mailedLink(t, email).RequestURI(), http.StatusOK)
	inspect("confirm-email-change")
	b.click("main form button", http.StatusOK)
	b.says("Now open the link that we have sent to the new address.", email)
	b.open(mailedLink(t, newEmail).RequestURI(), http.StatusOK)
	inspect("change-email")
	b.click("main form button", http.StatusOK)
	b.says("Your address is changed.", newEmail)
	inspect("account-changed")

	execute(t, `UPDATE accounts SET email_verified_at = NULL WHERE email = $1`, newEmail)
	b.open("/console/account", http.StatusOK)
	inspect("account-unverified")
	b.click(`form[action$="/send-verification"] button`, http.StatusOK)
	b.says("A mail with a link is on its way to your address.", "Not verified")
	b.open(mailedLink(t, newEmail).RequestURI(), http.StatusOK)
	b.click("main form button", http.StatusOK)
	b.says("Your address is verified.")
}
