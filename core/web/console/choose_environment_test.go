package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"intents.internal/core/pgtest"
)

// shows is the environment that a page's switch says the console shows.
func (a *answer) shows() string {
	a.t.Helper()
	pressed := a.find(func(n *html.Node) bool { return attribute(n, "aria-pressed") == "true" })
	if pressed == nil {
		a.t.Fatalf("%s has no switch", a.what)
	}
	return attribute(pressed, "value")
}

// The switch holds for every list and the overview, until it is used again.
func TestChooseEnvironment(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	ann.makeKey("only-test")
	ann.makeWebhook()
	tested := pgtest.InsertTransfer(t, s.store, s.known, s.ann(t).ID, pgtest.TransferBody)
	moved := pgtest.InsertTransfer(t, s.store, s.known, s.ann(t).ID, pgtest.TransferBody)
	pgtest.Exec(t, s.store, "UPDATE transfers SET environment = 'live', deadline = now() + interval '5 minutes' WHERE id = $1", moved.ID)
	paths := map[string]string{
		"/console":               "1 are open",
		"/console/keys":          "only-test",
		"/console/transfers":     tested.ID.String(),
		"/console/webhooks":      "https://example.com/hook",
		"/console/transfers/new": "Testnet chains",
	}
	for path, says := range paths {
		if page := ann.get(path).is(http.StatusOK); page.shows() != "test" || !strings.Contains(page.body, says) {
			t.Errorf("%s shows %s:\n%s", path, page.shows(), page.text())
		}
	}
	if page := ann.get("/console/transfers"); strings.Contains(page.text(), "Ethereum") || !strings.Contains(page.text(), "Sepolia") {
		t.Errorf("the chains to choose from are not the environment's: %s", page.text())
	}
	page := ann.get("/console/transfers?status=created&chain=eip155%3A1").is(http.StatusOK, "Ethereum")
	ann.post("/console/environment", "environment", "live", "next", page.field("next")).leadsTo("/console/transfers?status=created")
	for path, says := range map[string]string{
		"/console":               "Transfers that are not sent and expire within 15 minutes",
		"/console/keys":          "You have no live keys yet.",
		"/console/transfers":     moved.ID.String(),
		"/console/webhooks":      "You have no live webhooks yet.",
		"/console/transfers/new": "You have no enabled live key.",
	} {
		page := ann.get(path).is(http.StatusOK)
		if page.shows() != "live" || !strings.Contains(page.body, says) || strings.Contains(page.body, paths[path]) && path != "/console" {
			t.Errorf("%s shows %s:\n%s", path, page.shows(), page.text())
		}
	}
	both := ann.get("/console/transfers?environment=all").is(http.StatusOK)
	if both.link("/console/transfers/"+tested.ID.String()) == "" || both.link("/console/transfers/"+moved.ID.String()) == "" {
		t.Errorf("the list of both leaves one out: %s", both.text())
	}
	ann.get("/console/transfers?environment=test").is(http.StatusOK, "This page is of the Test environment. Lists and the overview show Live.")
}

// The page of an object opens in either environment and says its own. The switch leads from it to the list.
func TestChooseEnvironment_Object(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	key, _ := ann.makeKey("only-test")
	webhook, _ := ann.makeWebhook()
	intent := pgtest.InsertTransfer(t, s.store, s.known, s.ann(t).ID, pgtest.TransferBody).ID.String()
	pages := map[string]string{"/console/keys/" + key: "/console/keys", "/console/transfers/" + intent: "/console/transfers", webhook: "/console/webhooks"}
	const elsewhere = "This page is of the Test environment."
	for path, list := range pages {
		if page := ann.get(path).is(http.StatusOK); page.field("next") != list || strings.Contains(page.text(), elsewhere) {
			t.Errorf("%s: the switch leads to %s\n%s", path, page.field("next"), page.text())
		}
	}
	ann.post("/console/environment", "environment", "live", "next", "/console").leadsTo("/console")
	for path := range pages {
		ann.get(path).is(http.StatusOK, elsewhere)
	}
}

// A form that was sent twice shows the list that has what it made, which is not always the one that the console shows.
func TestChooseEnvironment_SentTwice(t *testing.T) {
	t.Parallel()
	ann := start(t).signedUp(t, "ann@example.com")
	ann.post("/console/environment", "environment", "test", "next", "/console").leadsTo("/console")
	form := []string{"name", "once", "environment", "live", "expiresIn", "3600", "webhooks", "1", "formToken", ann.get("/console/keys").field("formToken")}
	ann.post("/console/keys", form...).is(http.StatusOK, "is ready", "This page is of the Live environment.")
	ann.post("/console/keys", form...).is(http.StatusConflict, "This form was sent already", "once sk_live_", "This page is of the Live environment.")
}

// Before a browser has chosen, an account with a live key sees live.
func TestChooseEnvironment_Default(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	ann.makeKey("first")
	if shown := ann.get("/console").shows(); shown != "test" {
		t.Errorf("an account with a test key sees %s", shown)
	}
	pgtest.Exec(t, s.store, "UPDATE api_keys SET environment = 'live', start = replace(start, 'test', 'live')")
	if shown := ann.get("/console").shows(); shown != "live" {
		t.Errorf("an account with a live key sees %s", shown)
	}
	ann.post("/console/environment", "environment", "test", "next", "//evil.example").leadsTo("/console")
	if shown := ann.get("/console").shows(); shown != "test" {
		t.Errorf("a browser that chose test sees %s", shown)
	}
	ann.post("/console/environment", "environment", "prod", "next", "/console").is(http.StatusBadRequest, "Not this page's form")
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	ann.http.Jar.SetCookies(u, []*http.Cookie{{Name: "intents.environment", Value: "prod", Path: "/"}})
	if shown := ann.get("/console").shows(); shown != "live" {
		t.Errorf("a browser with a cookie of nobody's sees %s", shown)
	}
}
