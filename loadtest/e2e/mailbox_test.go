package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"intents.internal/pkg/testkit/embedded"
)

// mailbox has the last mail with a link to use that the stack sent to each address, until it is read.
var mailbox sync.Map

func receiveMail(m embedded.Mail) {
	if bytes.Contains(m.Data, []byte("Subject: Security notice")) {
		return
	}
	for _, recipient := range m.To {
		mailbox.Store(recipient, m)
	}
}

// signUp makes an account as a person does: by the link that is mailed, then signing in.
func signUp(t *testing.T, c *client, name, email, password string) {
	t.Helper()
	expect[map[string]any](t, c.do(http.MethodPost, "/auth/sign-up/email", map[string]any{"name": name, "email": email, "password": password}), 200)
	token := mailedLink(t, email).Query().Get("token")
	expect[map[string]any](t, c.do(http.MethodGet, "/auth/verify-email?token="+token, nil), 200)
	expect[map[string]any](t, c.do(http.MethodPost, "/auth/sign-in/email", map[string]any{"email": email, "password": password}), 200)
}

// mailedLink waits for a mail to an address and returns the link in it.
func mailedLink(t *testing.T, email string) (link *url.URL) {
	t.Helper()
	eventually(t, func() (err error) {
		got, found := mailbox.LoadAndDelete(email)
		if !found {
			return errors.New("no mail has come for " + email)
		}
		link, err = url.Parse(got.(embedded.Mail).Link()) //nolint:forcetypeassert // nothing else is stored
		return err
	})
	return link
}

// serveMailbox is an address that answers with the link of the last mail to the address in its query, and 404 where there is none.
func serveMailbox(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, found := mailbox.LoadAndDelete(r.URL.Query().Get("to"))
		if !found {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, got.(embedded.Mail).Link()) //nolint:forcetypeassert // nothing else is stored
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A core that has the mail of an address that nobody has says nothing of it, and sends none.
func TestPasswordReset_UnknownAddress(t *testing.T) {
	t.Parallel()
	somebody := newPerson(t, running.Env().GatewayURL)
	nobody := "nobody-" + somebody.email
	stranger := browserClient(t)
	answers := map[string]string{}
	for _, email := range []string{nobody, somebody.email} { // the second mail comes after the first would have
		a := stranger.do(http.MethodPost, "/auth/request-password-reset", map[string]any{"email": email})
		answers[email] = fmt.Sprintf("%d %s %s", a.Status, a.Body, a.Header.Get("Content-Type"))
	}
	if answers[nobody] != answers[somebody.email] || !strings.HasPrefix(answers[nobody], "200 ") {
		t.Errorf("answered %q", answers)
	}
	mailedLink(t, somebody.email)
	if _, found := mailbox.Load(nobody); found {
		t.Error("a mail was sent to an address without an account")
	}
}
