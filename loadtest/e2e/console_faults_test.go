package e2e_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/chromedp/chromedp"
)

func faultyForms(b *tab) {
	t := b.t
	focused := func() string { return evaluate[string](b, "document.activeElement.className") }

	t.Log("sign-up: each fault at its field, the summary has the focus, what was typed is still there")
	b.open("/console/sign-up", http.StatusOK)
	b.fill("#email", "not an address")
	b.fill("#password", consolePassword)
	b.click("main button", http.StatusBadRequest)
	b.says("There is a problem", "E-mail address must be an e-mail address such as name@example.com.")
	if describes := evaluate[string](b, `document.getElementById(document.querySelector("#email").getAttribute("aria-describedby")).textContent`); !strings.Contains(describes, "must be an e-mail address") {
		t.Errorf("the field is described by %q", describes)
	}
	if got := focused(); got != "problems" {
		t.Errorf("the focus is on %q", got)
	}
	if got := evaluate[string](b, `document.querySelector("#email").value`); got != "not an address" {
		t.Errorf("the field holds %q", got)
	}
	b.inspect("sign-up-fault")
	email := uniqueEmail("faults")
	b.signUp(email)

	t.Log("names: none, one of 60 KB, and one that is just right, in a form that was shown with a fault")
	b.click("main form button", http.StatusBadRequest)
	b.says("Name must have 1 to 64 characters.")
	b.inspect("keys-fault")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#name").value = "x".repeat(60 << 10)`))
	b.click("main form button", http.StatusBadRequest)
	b.says("Name must have 1 to 64 characters.")
	b.fill("#name", strings.Repeat("ü", 64))
	b.click("main form button", http.StatusOK)
	b.says("Your new key")

	t.Log("loading the answer again makes no second key")
	b.arrive(http.StatusConflict, chromedp.Reload())
	b.says("This form was sent already", "1 of 100")

	t.Log("deleting the account wants the password")
	b.open("/console/account", http.StatusOK)
	b.fill("#password", "wrong")
	b.click("button.danger", http.StatusBadRequest)
	b.says("The password is wrong.")
	b.inspect("account-fault")
	b.click("header button", http.StatusOK)

	t.Log("sign-in and sign-up say the same whether or not there is an account")
	var said []string
	for _, address := range []string{email, uniqueEmail("nobody")} {
		b.open("/console/sign-in", http.StatusOK)
		b.fill("#email", address)
		b.fill("#password", "wrong password")
		b.click("main form button", http.StatusUnauthorized)
		said = append(said, b.text())
	}
	if said[0] != said[1] || !strings.Contains(said[0], "The e-mail address or the password is wrong.") {
		t.Errorf("two answers: %q", said)
	}
	b.inspect("sign-in-fault")
	b.open("/console/sign-up", http.StatusOK)
	b.fill("#email", email)
	b.fill("#password", consolePassword)
	b.click("main button", http.StatusOK)
	b.says("Look at your mail") // as for any other address
	if link := mailedLink(t, email); link.Path != "/console/sign-in" {
		t.Errorf("an address that is taken is mailed %s", link)
	}

	t.Log("with the keyboard: the first stop skips to the content")
	b.do(chromedp.Navigate(b.base+"/console/sign-in"), chromedp.KeyEvent("\t"))
	if got := focused(); got != "skip" {
		t.Errorf("the first stop is %q", got)
	}
	b.do(chromedp.KeyEvent("\r"), chromedp.KeyEvent("\t"))
	if got := evaluate[string](b, "document.activeElement.id"); got != "email" {
		t.Errorf("the first stop in the content is %q", got)
	}
	b.open("/console/nothing", http.StatusNotFound)
	b.inspect("not-found")
}

// formFromElsewhere lets another site send a form of ours in the name of the person who is signed in.
func formFromElsewhere(b *tab) {
	t := b.t
	b.signUp(uniqueEmail("victim"))
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><title>x</title><link rel="icon" href="data:,"><form method="post" action="%s/console/sign-out"><button>Win</button></form>`, html.EscapeString(b.base))
	}))
	defer elsewhere.Close()
	b.arrive(http.StatusOK, chromedp.Navigate(elsewhere.URL))
	b.click("button", http.StatusForbidden)
	b.says("The request came from another site, so nothing was done.")
	b.inspect("another-site")
	for _, fault := range b.taken() {
		if !strings.HasPrefix(fault, "request to "+elsewhere.URL) {
			t.Error(fault)
		}
	}
	b.open("/console", http.StatusOK)
	b.says("API keys") // still signed in
}
