package console_test

import (
	"net/http"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
)

// stored are the scopes and networks of the only key of this name.
func (s *site) stored(t *testing.T, name string) string {
	t.Helper()
	return pgtest.LookUp[string](t, s.store, `SELECT concat_ws(' ', scopes, networks) FROM api_keys WHERE name = $1`, name)
}

// checked are the names of the boxes that are ticked.
func (a *answer) checked() string {
	var names []string
	for n := range a.root.Descendants() {
		for _, at := range n.Attr {
			if at.Key == "checked" {
				names = append(names, attribute(n, "name"))
			}
		}
	}
	return strings.Join(names, " ")
}

const everything = "intents:read intents:write webhooks"

func TestKeyRestrictions(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	fresh := ann.get("/console/keys")
	if got := fresh.checked(); got != everything {
		t.Errorf("a new key has the scopes %s", got)
	}

	t.Log("a form with a fault shows again what was sent, and makes no key")
	form := []string{"name", "reader", "environment", "test", "expiresIn", "never", "formToken", fresh.field("formToken")}
	none := ann.post("/console/keys", append(form, "networks", "10.0.0.0/8")...)
	none.is(http.StatusBadRequest, "10.0.0.0/8").alerts("The scopes must be one or more of")
	if got := none.checked(); got != "" {
		t.Errorf("ticked are %s", got)
	}
	wrong := ann.post("/console/keys", append(form, "webhooks", "1", "networks", "10.0.0.0/8\r\n</textarea><script>")...)
	wrong.is(http.StatusBadRequest).alerts(`The networks must be addresses or networks such as`)
	if got := wrong.checked(); got != "webhooks" || strings.Contains(wrong.body, "<script>") {
		t.Errorf("ticked are %s:\n%s", got, wrong.body)
	}
	ann.post("/console/keys", append(form, "webhooks", "1", "admin", "1")...).is(http.StatusBadRequest, "Not this page's form")

	t.Log("the list and the key's page say what it may do")
	made := ann.post("/console/keys", append(form, "intents:read", "1", "networks", " 10.1.2.3/8,\r\n2001:db8::/32\n192.0.2.1 ")...).is(http.StatusOK, "is ready")
	page := made.link("/console/keys/")
	if got := s.stored(t, "reader"); got != "{intents:read} {10.0.0.0/8,192.0.2.1/32,2001:db8::/32}" {
		t.Errorf("stored are %s", got)
	}
	ann.get("/console/transfers/new").is(http.StatusOK, "You have no enabled test key.", "that has the scope intents:write")
	ann.makeKey("free")
	ann.get("/console/transfers/new").is(http.StatusOK, "From chain")
	if list := ann.get("/console/keys").is(http.StatusOK); strings.Count(list.text(), "restricted") != 1 {
		t.Errorf("the list does not show one restricted key:\n%s", list.text())
	}
	shown := ann.get(page).is(http.StatusOK, "10.0.0.0/8, 192.0.2.1/32, 2001:db8::/32")
	if got := shown.checked(); got != "intents:read" {
		t.Errorf("ticked are %s", got)
	}

	t.Log("both are changed, and the audit log says to what")
	ann.post(page+"/restrict", "networks", "").is(http.StatusBadRequest).alerts("The scopes must be")
	ann.post(page+"/restrict", "webhooks", "1", "networks", "::1%eth0").is(http.StatusBadRequest).alerts("The networks must be")
	ann.post(page+"/restrict", "webhooks", "1", "networks", "127.0.0.1").leadsTo(page + "?done=restricted")
	ann.get(page+"?done=restricted").is(http.StatusOK, "They apply from now on", "127.0.0.1/32")
	ann.post(page+"/restrict", "intents:read", "1", "intents:write", "1", "webhooks", "1", "networks", "").leadsTo(page + "?done=restricted")
	if got := s.stored(t, "reader"); got != "{intents:read,intents:write,webhooks} {}" {
		t.Errorf("stored are %s", got)
	}
	ann.get("/console/audit").is(http.StatusOK, "test key, never expires, scopes intents:read, networks 10.0.0.0/8 192.0.2.1/32 2001:db8::/32",
		"scopes webhooks, networks 127.0.0.1/32", "scopes intents:read intents:write webhooks, any network")

	bob := s.signedUp(t, "bob@example.com")
	bob.post(page+"/restrict", "webhooks", "1", "networks", "").is(http.StatusNotFound)
}
