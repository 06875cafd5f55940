package webtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

const (
	// Password is that of every account.
	Password = "correct horse battery"
	// NewPassword is what a test changes it to.
	NewPassword = "staple correct horse"
)

// WithMail queues mails, which nobody sends.
func WithMail(s *Settings) { s.Identity.MailQueued = func() {} }

// SignUp makes an account and returns its cookie as a header.
func (s *Service) SignUp(t *testing.T, email string) []string {
	t.Helper()
	response := s.Send(t, "POST", "/auth/sign-up/email", fmt.Sprintf(`{"email":%q,"password":%q,"name":"Ann"}`, email, Password))
	text := ReadAll(t, response)
	if response.StatusCode != 200 {
		t.Fatalf("sign up: %s", text)
	}
	if response.Header.Get("Set-Cookie") == "" { // where mail is configured
		pgtest.Exec(t, s.Store, `UPDATE accounts SET email_verified_at = now() WHERE email = $1`, email)
		response = s.Send(t, "POST", "/auth/sign-in/email", fmt.Sprintf(`{"email":%q,"password":%q}`, email, Password))
		if text := ReadAll(t, response); response.StatusCode != 200 {
			t.Fatalf("sign in: %s", text)
		}
	}
	cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
	return []string{"Cookie", cookie}
}

// HashOf is the hash of a key, as gateways send it.
func HashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// ShownKey is a key as the response to its creation shows it.
type ShownKey struct {
	ID, Key, Start string
	ExpiresAt      *time.Time
}

// CreateKey makes a key as its owner does.
func (s *Service) CreateKey(t *testing.T, request string, owner []string) ShownKey {
	t.Helper()
	var made ShownKey
	response := s.Send(t, "POST", "/auth/api-key/create", request, owner...)
	if err := json.Unmarshal([]byte(ReadAll(t, response)), &made); err != nil || response.StatusCode != 200 {
		t.Fatalf("%d, %v", response.StatusCode, err)
	}
	return made
}

// SignIn returns the cookie of a new session of ann@example.com as a header.
func (s *Service) SignIn(t *testing.T, header ...string) []string {
	t.Helper()
	response := s.Send(t, "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+Password+`"}`, header...)
	if text := ReadAll(t, response); response.StatusCode != 200 {
		t.Fatalf("sign in: %s", text)
	}
	cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
	return []string{"Cookie", cookie}
}

// SessionID is the id of the session in a cookie, empty if it has none.
func (s *Service) SessionID(t *testing.T, cookie []string) string {
	t.Helper()
	var current *struct{ Session struct{ ID string } }
	response := s.Send(t, "GET", "/auth/get-session", "", cookie...)
	text := ReadAll(t, response)
	if err := json.Unmarshal([]byte(text), &current); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", response.StatusCode, text, err)
	}
	if current == nil {
		return ""
	}
	return current.Session.ID
}

// InsertLink is the token of a link about the account of an address.
func (s *Service) InsertLink(t *testing.T, email string, l identity.Link) string {
	t.Helper()
	owner, err := s.Store.Identities.AccountByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	token := account.NewLinkToken()
	l.AccountID, l.Email = owner.ID, owner.Email
	if err := s.Store.Identities.InsertLink(t.Context(), account.HashToken(token), l, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return token
}

// AccountID is the account's id.
func (s *Service) AccountID(t *testing.T, email string) string {
	t.Helper()
	return pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM accounts WHERE email = $1`, email).String()
}

// ShareWith makes a shared account of ann with members of these roles, all of which act on it.
func (s *Service) ShareWith(t *testing.T, ann []string, roles map[string]string) (id string, members map[string][]string) {
	t.Helper()
	if got := s.Call(t, "POST", "/auth/organization/create", `{"name":"Shop","slug":"shop"}`, ann...); got.Status != 200 {
		t.Fatalf("create: %v", got)
	}
	id = pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM accounts WHERE shared`).String()
	members = map[string][]string{}
	for email, role := range roles {
		members[role] = s.SignUp(t, email)
		pgtest.Exec(t, s.Store, `INSERT INTO members (account_id, person_id, role, created_at)
			VALUES ($1, $2, $3, now())`, id, s.AccountID(t, email), role)
		if got := s.Call(t, "POST", "/auth/organization/set-active", `{"organizationId":"`+id+`"}`, members[role]...); got.Status != 200 {
			t.Fatalf("set-active: %v", got)
		}
	}
	return id, members
}
