package webtest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/outbound"
	"intents.internal/core/webhooks"
)

const (
	// HookBody creates a webhook.
	HookBody = `{"url":"https://example.com/hooks","types":["transfer.*"]}`
	// ReportBody reports the hash of a transaction.
	ReportBody = `{"hash":"0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`
)

// WithWebhooks has a key for secrets and allows no network besides public ones.
func WithWebhooks(t *testing.T) func(*Settings) {
	t.Helper()
	sealer, err := webhooks.NewSealer(make([]byte, 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(s *Settings) {
		s.Webhooks = &webhooks.Rules{Networks: outbound.NewNetworks(nil), Sealer: sealer}
	}
}

// NewOwner makes an account and returns its id and the headers of its test key.
func (s *Service) NewOwner(t *testing.T) (uuid.UUID, []string) {
	t.Helper()
	a, err := account.New("", uuid.NewString()+"@example.com", "hash", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	entry, err := account.NewAuditEntry(a.ID, account.Actor{}, account.SignedUp, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Identities.InsertAccount(t.Context(), a, entry); err != nil {
		t.Fatal(err)
	}
	return a.ID, Keyed(a.ID, "test")
}

// CreateTransfer makes an intent and returns the raw text of the record.
func (s *Service) CreateTransfer(t *testing.T, request string, header ...string) (status int, location, record string) {
	t.Helper()
	response := s.Send(t, "POST", "/v2/transfers", request, header...)
	return response.StatusCode, response.Header.Get("Location"), ReadAll(t, response)
}

// CreateWebhook makes a webhook and returns its id.
func (s *Service) CreateWebhook(t *testing.T, key []string) string {
	t.Helper()
	response := s.Send(t, "POST", "/v2/webhooks", `{"url":"https://example.com/hooks"}`, key...)
	text := ReadAll(t, response)
	var created struct{ ID, Secret string }
	if err := json.Unmarshal([]byte(text), &created); err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	if !regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{43}=$`).MatchString(created.Secret) {
		t.Errorf("the secret is %q", created.Secret)
	}
	return created.ID
}
