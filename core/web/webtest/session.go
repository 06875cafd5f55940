package webtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"intents.internal/core/pgtest"
)

// Password is that of every account.
const Password = "correct horse battery"

// SignUp makes an account and returns its cookie as a header.
func SignUp(t *testing.T, s *Service, email string) []string {
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
func CreateKey(t *testing.T, s *Service, request string, owner []string) ShownKey {
	t.Helper()
	var made ShownKey
	response := s.Send(t, "POST", "/auth/api-key/create", request, owner...)
	if err := json.Unmarshal([]byte(ReadAll(t, response)), &made); err != nil || response.StatusCode != 200 {
		t.Fatalf("%d, %v", response.StatusCode, err)
	}
	return made
}
