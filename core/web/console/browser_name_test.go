package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity/account"
)

// Sessions and the audit log name a browser and do not show its header, whatever the header is.
func TestBrowserName(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.signedUp(t, "ann@example.com")
	owner := s.ann(t)
	const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
	for header, want := range map[string]string{
		chrome: "Chrome on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0":           "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1": "Safari on iOS",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:132.0) Gecko/20100101 Firefox/132.0":                                                    "Firefox on macOS",
		"curl/8.5.0":                          "curl",
		"<b>1</b>/1 (Linux)":                  "Unknown browser on Linux",
		"one two " + strings.Repeat("x", 100): "Unknown browser",
	} {
		session, token, err := account.NewSession(owner.ID, "203.0.113.7", header, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		entry, err := account.NewAuditEntry(owner.ID, account.Actor{PersonID: owner.ID, IPAddress: "203.0.113.7", UserAgent: header}, account.SignedIn, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.store.InsertSession(t.Context(), session, owner, entry); err != nil {
			t.Fatal(err)
		}
		b := s.browserWith(t, token)
		for path, want := range map[string]string{"/console/account": want + " 203.0.113.7", "/console/audit": "203.0.113.7 " + want} {
			if page := b.get(path).is(http.StatusOK, want); strings.Contains(page.text(), header) {
				t.Errorf("%s shows the header %q", path, header)
			}
		}
	}
}
