package e2e_test

import "net/http"

// walkReset goes from the sign-in page to a new password, by a mail, and changes it once more.
func walkReset(b *tab) {
	t := b.t
	somebody := newPerson(t, running.Env().GatewayURL)
	b.open("/console/sign-in")
	b.fill("#email", somebody.email, "#password", "wrong password")
	b.clickRefused("main form button", http.StatusUnauthorized, "The e-mail address or the password is wrong.")
	b.inspect("sign-in-fault")
	b.click(`main a[href="/console/forgot-password"]`)
	b.inspect("forgot-password")
	b.fill("#email", "nobody")
	b.clickRefused("main form button", http.StatusBadRequest)
	b.inspect("forgot-password-wrong")
	b.fill("#email", somebody.email)
	b.click("main form button", "a mail with a link is on its way to it.")
	b.inspect("forgot-password-sent")

	link := mailedLink(t, somebody.email)
	b.open(link.RequestURI())
	b.inspect("reset-password")
	b.fill("#newPassword", "staple correct horse")
	b.click("main form button", "The password is changed. Sign in with it")
	b.signIn(somebody.email, "staple correct horse", "API keys")
	if a := somebody.do(http.MethodGet, "/auth/get-session", nil); string(a.Body) != "null" {
		t.Errorf("a session outlives the reset: %s", a.Body)
	}
	b.open(link.RequestURI())
	b.fill("#newPassword", "another password")
	b.clickRefused("main form button", http.StatusBadRequest, "The link was used, has expired or is not complete.")
	b.inspect("reset-password-used")

	b.open("/console/account")
	b.click(`main dd a[href="/console/account/password"]`)
	b.inspect("password")
	b.fill("#password", "a wrong password", "#newPassword", password)
	b.clickRefused("main form button", http.StatusBadRequest, "The password is wrong.")
	b.inspect("password-wrong")
	b.fill("#password", "staple correct horse", "#newPassword", password)
	b.click("main form button", "The password is changed, and all other sessions are ended.")
}

// walkAddress goes from sign-up over the mailed link to another address, which the old one and the new one confirm.
func walkAddress(b *tab) {
	t := b.t
	email := uniqueEmail("address")
	b.open("/console/sign-up")
	b.signIn(email, password, "Look at your mail")
	b.inspect("sign-up-sent")
	first := mailedLink(t, email)
	b.open("/console/sign-in")
	b.fill("#email", email, "#password", password)
	b.clickRefused("main form button", http.StatusUnauthorized, "open the link in your mail first")
	b.inspect("sign-in-unverified")
	b.open(first.RequestURI())
	b.inspect("verify-email")
	b.fill("#password", "a wrong password")
	b.clickRefused("main form button", http.StatusBadRequest)
	b.inspect("verify-email-wrong")
	b.fill("#password", password)
	b.click("main form button", "Your address is verified.", "Verified")
	b.openRefused(first.RequestURI(), http.StatusUnauthorized, "The link was used, has expired or is not complete.")
	b.inspect("verify-email-used")

	newEmail := "new-" + email
	b.open("/console/account")
	b.click(`main dd a[href="/console/account/email"]`)
	b.inspect("email")
	b.fill("#newEmail", email)
	b.clickRefused("main form button", http.StatusBadRequest, "The new address is the address that the account has.")
	b.inspect("email-wrong")
	b.fill("#newEmail", newEmail)
	b.click("main form button", "A mail with a link is on its way.")
	b.open(mailedLink(t, email).RequestURI())
	b.inspect("confirm-email-change")
	b.click("main form button", "Now open the link that we have sent to the new address.", email)
	b.open(mailedLink(t, newEmail).RequestURI())
	b.inspect("change-email")
	b.click("main form button", "Your address is changed.", newEmail)
	b.inspect("account-changed")
}
