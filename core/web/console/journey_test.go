package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/apikey"
)

// The way of a key, from the first page to the audit log.
func TestKeys_Lifecycle(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.browser(t)
	ann.post("/console/sign-up", "name", "Ann", "email", "ann@example.com", "password", password).leadsTo("/console?done=signed-up")
	ann.get("/console?done=signed-up").is(http.StatusOK, "Your account is ready", "You have no keys yet.", "Make a test key", "Nothing at the moment.")

	t.Log("the key is shown once, is the one that was stored, and is in no list")
	id, text := ann.makeKey("first")
	key, err := apikey.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if found, _, err := s.store.Identities.UsableKey(t.Context(), key.Hash(), lastMinute()); err != nil || found.ID.String() != id {
		t.Fatalf("the key that was shown: %+v, %v", found, err)
	}
	page := "/console/keys/" + id
	for _, path := range []string{"/console/keys", page, "/console/audit"} {
		if a := ann.get(path).is(http.StatusOK, "first"); strings.Contains(a.body, text) {
			t.Errorf("%s shows the whole key", path)
		}
	}
	ann.get("/console/keys").is(http.StatusOK, "1 of 100", text[:12], "Enabled", "Never", "Not yet", "not known at this moment")

	t.Log("rename, with what could be mistaken for HTML")
	const odd = `<script>alert(1)</script>"'&`
	ann.post(page+"/rename", "name", odd).leadsTo(page + "?done=renamed")
	if a := ann.get(page+"?done=renamed").is(http.StatusOK, "The key is renamed.", odd); a.field("name") != odd || strings.Contains(a.body, "<script>alert") {
		t.Errorf("the name is not escaped:\n%s", a.body)
	}

	t.Log("disable, enable, another expiry")
	ann.post(page + "/disable").leadsTo(page + "?done=disabled")
	ann.get(page).is(http.StatusOK, "Disabled", "Enable the key")
	ann.post(page + "/enable").leadsTo(page + "?done=enabled")
	ann.post(page+"/expire", "expiresIn", "86400").leadsTo(page + "?done=expiry")
	ann.get(page).is(http.StatusOK, "Enabled", "Disable the key")

	t.Log("rotate with a grace: the new key is shown, the old one says that it is on its way out, and cannot be rotated again")
	rotated := ann.post(page+"/rotate", "gracePeriod", "3600").is(http.StatusOK, "Your key was rotated", "works for 60 minutes more")
	next := rotated.link("/console/keys/")
	if shown := rotated.element("key"); shown == text || next == page || !strings.Contains(rotated.element("curl"), shown) {
		t.Errorf("rotated to %s at %s", shown, next)
	}
	ann.get(page).is(http.StatusOK, "Rotated out", "This key was replaced by rotation.")
	ann.post(page+"/rotate", "gracePeriod", "0").is(http.StatusConflict, "The key was rotated already").alerts("rotated already")

	t.Log("delete asks first and names the key; a second time there is nothing to delete")
	ann.get(page+"/delete").is(http.StatusOK, "Delete this key?", odd, text[:12])
	ann.post(page + "/delete").leadsTo("/console/keys?done=deleted")
	ann.post(page+"/delete").is(http.StatusNotFound, "no such key")
	ann.get(page).is(http.StatusNotFound, "no such key")

	t.Log("the audit log tells it all")
	ann.get("/console/audit").is(http.StatusOK, "Signed up", "Signed in", "Key created", "test key, never expires", "Key changed",
		"disabled", "enabled", "Key rotated", "Key deleted", "192.0.2.1", "ann@example.com")

	ann.post("/console/sign-out").leadsTo("/console/sign-in?done=signed-out")
	ann.get("/console").leadsTo("/console/sign-in?next=%2Fconsole")
}

// A form that is sent twice makes one key, and its second answer says what to do.
func TestCreateKey_SentTwice(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	form := []string{"name", "once", "environment", "live", "expiresIn", "3600", "webhooks", "1", "formToken", ann.get("/console/keys").field("formToken")}
	ann.post("/console/keys", form...).is(http.StatusOK, "is ready")
	ann.post("/console/keys", form...).is(http.StatusConflict, "This form was sent already", "1 of 100", "Live").alerts("rotate it")
	// A form with a fault has not been used up.
	formToken := ann.get("/console/keys").field("formToken")
	ann.post("/console/keys", append(newKey, "name", " ", "formToken", formToken)...).is(http.StatusBadRequest)
	ann.post("/console/keys", append(newKey, "name", "two", "formToken", formToken)...).is(http.StatusOK, "is ready")
}

func TestShowAccount(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, other := s.signedUp(t, "ann@example.com"), s.browser(t)
	other.post("/console/sign-in", "email", "ann@example.com", "password", password).leadsTo("/console")
	third := s.browser(t)
	third.post("/console/sign-in", "email", "ann@example.com", "password", password, "next", "/console/audit").leadsTo("/console/audit")

	page := ann.get("/console/account").is(http.StatusOK, "ann@example.com", "This browser", "End all other sessions")
	ann.post("/console/account/revoke-session", "session", page.field("session")).leadsTo("/console/account?done=revoked")
	if a := third.get("/console"); a.status != http.StatusSeeOther {
		t.Errorf("the newest session was ended and is answered with %d", a.status)
	}
	ann.post("/console/account/revoke-session", "session", page.field("session")).is(http.StatusNotFound, "no such key or session")
	ann.post("/console/account/revoke-others").leadsTo("/console/account?done=revoked-all")
	other.get("/console").leadsTo("/console/sign-in?done=ended&next=%2Fconsole")
	ann.get("/console/account?done=revoked-all").is(http.StatusOK, "All other sessions are ended.")

	ann.post("/console/account/delete", "password", "wrong").is(http.StatusBadRequest).tied("password", "The password is wrong.")
	ann.post("/console/account/delete", "password", password).leadsTo("/console/sign-in?done=account-ended")
	if a := ann.get("/console"); a.status != http.StatusSeeOther {
		t.Errorf("the deleted account is answered with %d", a.status)
	}
	ann.post("/console/sign-in", "email", "ann@example.com", "password", password).is(http.StatusUnauthorized)
}

// An account of a wallet has no password to confirm with and no address to show.
func TestShowAccount_WithoutPassword(t *testing.T) {
	t.Parallel()
	s := start(t)
	now := lastMinute()
	identity, err := account.NewWalletIdentity("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")
	if err != nil {
		t.Fatal(err)
	}
	owner, err := account.NewWalletAccount(identity, now)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := account.NewAuditEntry(owner.ID, account.Actor{}, account.SignedUp, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.Identities.InsertAccountWithIdentity(t.Context(), owner, identity, entry); err != nil {
		t.Fatal(err)
	}
	old, fresh := s.session(t, owner, now.Add(-account.SessionLifetime/2)), s.session(t, owner, now)
	old.get("/console/account").is(http.StatusOK, "E-mail address none", "You have no password")
	old.post("/console/account/delete").is(http.StatusForbidden).alerts("You have no password, so sign out, sign in again the same way")
	fresh.post("/console/account/delete").leadsTo("/console/sign-in?done=account-ended")
}

var hashed = regexp.MustCompile(`^/console/assets/[a-z]+\.[0-9a-f]{16}\.(css|js|svg)$`)

func TestAssets(t *testing.T) {
	t.Parallel()
	anyone := start(t).browser(t)
	page := anyone.get("/console/sign-in").is(http.StatusOK)
	for n := range page.root.Descendants() {
		url := attribute(n, "src")
		if n.Data == "link" {
			url = attribute(n, "href")
		}
		if url == "" {
			continue
		}
		if !hashed.MatchString(url) {
			t.Errorf("asset %s", url)
		}
		if a := anyone.get(url); a.status != http.StatusOK || a.header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %d %v", url, a.status, a.header)
		}
		// Another version's address gets the file of this one, for now.
		stale := regexp.MustCompile(`[0-9a-f]{16}`).ReplaceAllString(url, "0123456789abcdef")
		if a := anyone.get(stale); a.status != http.StatusOK || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", stale, a.status, a.header)
		}
	}
	if a := anyone.get("/console/assets/nothing.css"); a.status != http.StatusNotFound {
		t.Errorf("a file that is not there: %d", a.status)
	}
}
