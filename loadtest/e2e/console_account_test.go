package e2e_test

import "net/http"

// walkAccount goes through the mails of an account: from sign-up over the link to a password that was forgotten, and to another address,
// which the old one and the new one confirm.
func walkAccount(b *tab) {
	t := b.t
	email, another := uniqueEmail("address"), "staple correct horse"
	b.open("/console/sign-up")
	b.signIn(email, password, "Look at your mail")
	b.inspect("sign-up-sent")
	first := mailedLink(t, email)
	b.open(first.RequestURI())
	b.inspect("verify-email")
	b.fill("#password", password)
	b.click("main form button", "Your address is verified.", "Verified")
	b.openRefused(first.RequestURI(), http.StatusUnauthorized, "The link was used, has expired or is not complete.")
	b.inspect("verify-email-used")

	b.open("/console/account")
	b.click(`form[action="/console/sign-out"] button`, "You are signed out.")
	b.click(`main a[href="/console/forgot-password"]`)
	b.inspect("forgot-password")
	b.fill("#email", email)
	b.click("main form button", "a mail with a link is on its way to it.")
	b.inspect("forgot-password-sent")
	b.open(mailedLink(t, email).RequestURI())
	b.inspect("reset-password")
	b.fill("#newPassword", another)
	b.click("main form button", "The password is changed. Sign in with it")
	b.signIn(email, another, "Overview")
	b.open("/console/account/password")
	b.inspect("password")

	newEmail := "new-" + email
	b.open("/console/account")
	b.click(`main dd a[href="/console/account/email"]`)
	b.inspect("email")
	b.fill("#newEmail", newEmail)
	b.click("main form button", "A mail with a link is on its way.")
	b.open(mailedLink(t, email).RequestURI())
	b.inspect("confirm-email-change")
	b.click("main form button", "Now open the link that we have sent to the new address.", email)
	b.open(mailedLink(t, newEmail).RequestURI())
	b.inspect("change-email")
	b.click("main form button", "Your address is changed.", newEmail)
}
