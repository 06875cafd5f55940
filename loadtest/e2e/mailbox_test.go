package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"intents.internal/pkg/testkit/asynctest"
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

// mailedLink waits for a mail to an address and returns the link in it.
func mailedLink(t *testing.T, email string) (link *url.URL) {
	t.Helper()
	asynctest.Succeeds(t, func() (err error) {
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
