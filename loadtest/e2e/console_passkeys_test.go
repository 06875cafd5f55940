package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"intents.internal/loadtest/system"
)

// A person adds a passkey in a real browser, confirms and signs in with it. Then a thief has the password and the mailbox, and is kept from a
// live key.
func TestConsole_Passkeys(t *testing.T) {
	journey(t)
	t.Parallel()
	browser := chromium(t)
	b := openTab(browser, t)
	authenticator := b.authenticator()
	email := uniqueEmail("passkey")
	b.signUp(email)

	t.Log("add a passkey, rename it")
	b.open("/console/account", "Passkeys", "None.", "Add a passkey")
	b.fill("#passkey-name", "laptop")
	b.leads(`[data-passkey="add"] button`, "The passkey is added", "laptop", "Not yet", "Add a passkey")
	b.inspect("account-passkeys")
	b.keepsPlace("[data-passkey]")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#passkeys ~ details").open = true`), chromedp.SetValue(chromedp.CSS("#name"), "desk"))
	b.click("#passkeys ~ details button", "The passkey is renamed.", "desk")
	b.do(chromedp.Click(chromedp.CSS(`[data-passkey="add"] button`)))
	b.tells("#passkey-says", "This device has a passkey for your account already.")
	b.click(`main a[href^="/console/account/remove-passkey"]`, "Remove this passkey?", "desk")
	b.inspect("remove-passkey")

	t.Log("what needs a fresh session leads through the confirmation and back")
	ageConfirmations(t, email)
	b.open("/console/keys", "Confirm with your passkey that it is you")
	b.click(`main a[href^="/console/account/confirm"]`, "Confirm it is you", "Confirm with a passkey")
	b.inspect("confirm-person")
	b.keepsPlace("[data-passkey]")
	b.verifies(authenticator, false)
	b.do(chromedp.Click(chromedp.CSS(`[data-passkey="confirm"] button`)))
	b.tells("#passkey-says", "It was not confirmed on your device.")
	b.verifies(authenticator, true)
	b.forges(authenticator, true)
	b.do(chromedp.Click(chromedp.CSS(`[data-passkey="confirm"] button`)))
	b.tells("#passkey-says", "The response does not prove the passkey for the challenge at this site, with user verification; ask for options again.")
	b.forges(authenticator, false)
	b.leads(`[data-passkey="confirm"] button`, "API keys")
	b.makeLiveKey("mine", http.StatusOK, "Your new key")

	t.Log("sign in with the passkey by the button, in a browser that does not offer it by itself")
	b.open("/console")
	offers := b.offersNothing()
	b.click(`form[action="/console/sign-out"] button`, "You are signed out.", "Sign in with a passkey")
	b.inspect("sign-in-passkey")
	b.keepsPlace("[data-passkey]")
	b.leads(`[data-passkey="sign-in"] button`, "Overview")
	offers()

	t.Log("a thief has the password and the mailbox")
	thief := openTab(browser, t)
	stolen := password
	for _, means := range []string{"the password", "the mailbox"} {
		if means == "the mailbox" {
			thief.open("/console/forgot-password")
			thief.fill("#email", email)
			thief.click("main form button", "a mail with a link is on its way to it.")
			stolen = "the thief's own password"
			thief.open(mailedLink(t, email).RequestURI())
			thief.fill("#newPassword", stolen)
			thief.click("main form button", "The password is changed.")
		} else {
			thief.open("/console/sign-in")
		}
		thief.signIn(email, stolen, "Overview")
		thief.makeLiveKey("stolen", http.StatusForbidden, "Confirm with your passkey that it is you")
		thief.open("/console/account/confirm", "Confirm with a passkey")
		if fields := evaluate[int](thief, `document.querySelectorAll("main input").length`); fields != 0 {
			t.Errorf("with %s the thief confirms in %d fields", means, fields)
		}
		thief.isNotFresh("POST", "/auth/api-key/create", `{"name":"stolen","environment":"live","password":"`+stolen+`"}`)
		thief.isNotFresh("GET", "/auth/passkey/generate-register-options", "")
		thief.isNotFresh("POST", "/auth/passkey/delete-passkey", `{"id":"01a1fc68-0656-76d5-9bf2-4a428e39a05a"}`)
		thief.isNotFresh("POST", "/auth/change-email", `{"newEmail":"thief@example.com","password":"`+stolen+`"}`)
		thief.isNotFresh("POST", "/auth/unlink-account", `{"providerId":"credential"}`)
		thief.isNotFresh("POST", "/auth/delete-user", `{"password":"`+stolen+`"}`)
	}
	if keys := system.QueryRow[int](t, shared.Stack.Env().DatabaseURL, `SELECT count(*) FROM api_keys JOIN accounts ON accounts.id = account_id
		WHERE email = $1 AND environment = 'live'`, email); keys != 1 {
		t.Errorf("there are %d live keys, want the person's alone", keys)
	}
	b.verifies(authenticator, false)
	b.open("/console/sign-in")
	b.verifies(authenticator, true) // and the browser takes the passkey that the page has offered
	b.tells("h1", "Overview")
	b.makeLiveKey("mine too", http.StatusOK, "Your new key")

	t.Log("without scripts the pages say what is missing")
	bare := openTab(browser, t)
	if _, err := chromedp.Call(bare.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	bare.open("/console/sign-in", "Signing in with a passkey needs JavaScript, which is off in this browser.")
	bare.fill("#email", email, "#password", "the thief's own password")
	bare.click("main form button", "Overview")
	bare.open("/console/account/confirm", "Passkeys need JavaScript, which is off in this browser.")
}

// keepsPlace expects what follows an element to be where it is also while the element is hidden, as it is before its script shows it.
func (b *tab) keepsPlace(selector string) {
	b.t.Helper()
	moved := evaluate[float64](b, fmt.Sprintf(`(() => {
		const shown = document.querySelector(%q);
		const below = () => document.querySelector("footer").getBoundingClientRect().top;
		const before = below();
		shown.hidden = true;
		const moved = before - below();
		shown.hidden = false;
		return moved;
	})()`, selector))
	if moved != 0 {
		b.t.Errorf("%s moves what is below it by %.0f pixels when it is shown", selector, moved)
	}
}

// authenticator gives the tab a platform authenticator, and returns its id.
func (b *tab) authenticator() webauthn.AuthenticatorID {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		b.t.Fatal(err)
	}
	added, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true,
		HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	return added.AuthenticatorID
}

// verifies is whether the authenticator verifies its user, for which the browser asks.
func (b *tab) verifies(id webauthn.AuthenticatorID, verifies bool) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: id, IsUserVerified: verifies}); err != nil {
		b.t.Fatal(err)
	}
}

// forges has the authenticator answer without the flag of user verification.
func (b *tab) forges(id webauthn.AuthenticatorID, forges bool) {
	b.t.Helper()
	bits := webauthn.SetResponseOverrideBitsParams{AuthenticatorID: id, IsBadUV: &forges}
	if _, err := chromedp.Call(b.ctx, webauthn.SetResponseOverrideBits, bits); err != nil {
		b.t.Fatal(err)
	}
}

// offersNothing keeps the tab's pages from offering passkeys where the address is typed (conditional mediation), until the returned function is called.
func (b *tab) offersNothing() (offers func()) {
	b.t.Helper()
	script, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: "PublicKeyCredential.isConditionalMediationAvailable = async () => false",
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return func() {
		_, err := chromedp.Call(b.ctx, page.RemoveScriptToEvaluateOnNewDocument, page.RemoveScriptToEvaluateOnNewDocumentParams(script))
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// leads presses a button of the page's script that leads to another page, and expects that it says these.
func (b *tab) leads(selector string, says ...string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS(selector)))
	b.click(selector, says...)
}

// makeLiveKey asks for a live key in the form of the page of keys.
func (b *tab) makeLiveKey(name string, status int64, says ...string) {
	b.t.Helper()
	b.open("/console/keys")
	b.fill("#name", name)
	b.do(chromedp.SetValue(chromedp.CSS("#environment"), "live"))
	b.clickRefused("main form button", status, says...)
}

// isNotFresh makes a request of the page, whose session is not fresh enough for it.
func (b *tab) isNotFresh(method, path, body string) {
	b.t.Helper()
	got := evaluate[string](b, fmt.Sprintf(`fetch(%q, {method: %q, body: %q || undefined, headers: {"Content-Type": "application/json"}})
		.then(async (answer) => answer.status + " " + (await answer.json()).code)`, path, method, body))
	if want := fmt.Sprintf("%d SESSION_NOT_FRESH", http.StatusForbidden); !strings.HasPrefix(got, want) {
		b.t.Errorf("%s %s: %s, want %s", method, path, got, want)
	}
}
