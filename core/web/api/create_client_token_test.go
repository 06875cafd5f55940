package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/route"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/clienttoken"
	"intents.internal/pkg/telemetry"
)

// keyOf stores a test key of a new account and returns it with its headers.
func keyOf(t *testing.T, s *service) (*account.Key, []string) {
	t.Helper()
	owner := pgtest.SignUp(t, s.Store, uuid.NewString()+"@example.com")
	key := pgtest.InsertKey(t, s.Store, owner.ID)
	return key, append(webtest.Keyed(owner.ID, "test"), "X-Key-Id", key.ID.String())
}

// mint asks for a token and returns its claims, verified with a secret.
func (s *service) mint(
	t *testing.T, secret telemetry.Secret, location, body string, header ...string,
) (claims clienttoken.Claims, expiresAt time.Time) {
	t.Helper()
	response := s.Send(t, "POST", location+"/client-token", body, header...)
	raw := webtest.ReadAll(t, response)
	var got struct {
		Token     string
		ExpiresAt time.Time
	}
	if err := json.Unmarshal([]byte(raw), &got); err != nil || response.StatusCode != 201 {
		t.Fatalf("%s: %d %s", body, response.StatusCode, raw)
	}
	claims, err := clienttoken.NewMinter(secret).Verify([]byte(got.Token))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return claims, got.ExpiresAt
}

func TestCreateClientToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	key, header := keyOf(t, s)
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, header...)
	for body, lifetime := range map[string]time.Duration{
		``: 24 * time.Hour, `{}`: 24 * time.Hour, `{"expiresIn":1}`: time.Second, `{"expiresIn":86400}`: 24 * time.Hour,
	} {
		asked := time.Now()
		got, expiresAt := s.mint(t, webtest.GatewaySecret, location, body, header...)
		want := clienttoken.Claims{Key: key.Hash, TransferID: uuid.MustParse(location[len("/v2/transfers/"):]), Expires: expiresAt.UTC()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		if took := expiresAt.Sub(asked); took > lifetime+10*time.Second || took < lifetime-time.Second {
			t.Errorf("%s: it expires after %v, want %v", body, took, lifetime)
		}
	}
	const seconds = "must be a number of seconds from 1 to 86400"
	for body, want := range map[string]webtest.Answer{
		`{"expiresIn":0}`:     webtest.Invalid(t, "/expiresIn", seconds),
		`{"expiresIn":86401}`: webtest.Invalid(t, "/expiresIn", seconds),
		`{"expiresIn":null}`:  webtest.Invalid(t, "/expiresIn", "must not be null"),
		`{"expiresIn":"1"}`:   webtest.Invalid(t, "/expiresIn", "must not be a JSON string"),
		`{"scope":"all"}`:     webtest.Invalid(t, "/scope", "is not a known field"),
	} {
		webtest.Same(t, body, want, s.Call(t, "POST", location+"/client-token", body, header...))
	}
	webtest.Same(t, "a query", webtest.Invalid(t, "a", "is not a known parameter"), s.Call(t, "POST", location+"/client-token?a=1", "", header...))
}

func TestCreateClientToken_NotFound(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, header := keyOf(t, s)
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, header...)
	_, stranger := keyOf(t, s)
	gone := webtest.Refused(t, 404, "NOT_FOUND", "The account has no such transfer.")
	webtest.Same(t, "another account's", gone, s.Call(t, "POST", location+"/client-token", "", stranger...))
	webtest.Same(t, "no intent", gone, s.Call(t, "POST", "/v2/transfers/none/client-token", "", header...))
}

// A token is not valid for longer than its key, and a key that has ended since the gateway verified it makes none.
func TestCreateClientToken_KeyEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	key, header := keyOf(t, s)
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, header...)
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	pgtest.Exec(t, s.Store, `UPDATE api_keys SET expires_at = $1 WHERE id = $2`, soon, key.ID)
	if _, expiresAt := s.mint(t, webtest.GatewaySecret, location, "", header...); !expiresAt.Equal(soon) {
		t.Errorf("it expires at %v, its key at %v", expiresAt, soon)
	}
	pgtest.Exec(t, s.Store, `UPDATE api_keys SET deleted_at = now() WHERE id = $1`, key.ID)
	webtest.Same(t, "a deleted key", webtest.Refused(t, 403, "INVALID_API_KEY", "This API key is no longer valid. Use another one."),
		s.Call(t, "POST", location+"/client-token", "", header...))
}

// While the shared secret changes, a gateway gets tokens of the secret that it has.
func TestCreateClientToken_Rotation(t *testing.T) {
	t.Parallel()
	const next = "the secret that gateways will have"
	s := start(t, func(c *webtest.Settings) { c.API.Secrets = route.NewSecrets(next, webtest.GatewaySecret) })
	_, header := keyOf(t, s)
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, header...)
	s.mint(t, webtest.GatewaySecret, location, "", header...)
	s.mint(t, next, location, "", append(header, "X-Gateway-Secret", next)...)
}

// The token is neither stored nor logged.
func TestCreateClientToken_Unseen(t *testing.T) {
	t.Parallel()
	s := start(t)
	key, header := keyOf(t, s)
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, header...)
	s.mint(t, webtest.GatewaySecret, location, "", header...)
	if log := s.Log.String(); strings.Contains(log, clienttoken.Prefix) || strings.Contains(log, fmt.Sprintf("%x", key.Hash)) {
		t.Errorf("the log has a token or its key's hash:\n%s", log)
	}
}
