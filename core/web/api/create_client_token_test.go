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
	"intents.internal/pkg/clienttoken"
	"intents.internal/pkg/telemetry"
)

// keyOf stores a test key of a new account and returns it with its headers.
func keyOf(t *testing.T, s *service) (*account.Key, []string) {
	t.Helper()
	owner := pgtest.SignUp(t, s.store, uuid.NewString()+"@example.com")
	key := pgtest.InsertKey(t, s.store, owner.ID)
	return key, append(keyed(owner.ID, "test"), "X-Key-Id", key.ID.String())
}

// mint asks for a token and returns its claims, verified with a secret.
func (s *service) mint(
	t *testing.T, secret telemetry.Secret, location, body string, header ...string,
) (claims clienttoken.Claims, expiresAt time.Time) {
	t.Helper()
	response := s.send(t, "POST", location+"/client-token", body, header...)
	raw := readAll(t, response)
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
	_, location, _ := s.create(t, transferBody, header...)
	for body, lifetime := range map[string]time.Duration{
		``: 24 * time.Hour, `{}`: 24 * time.Hour, `{"expiresIn":1}`: time.Second, `{"expiresIn":86400}`: 24 * time.Hour,
	} {
		asked := time.Now()
		got, expiresAt := s.mint(t, gatewaySecret, location, body, header...)
		want := clienttoken.Claims{Key: key.Hash, TransferID: uuid.MustParse(location[len("/v2/transfers/"):]), Expires: expiresAt.UTC()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		if took := expiresAt.Sub(asked); took > lifetime+10*time.Second || took < lifetime-time.Second {
			t.Errorf("%s: it expires after %v, want %v", body, took, lifetime)
		}
	}
	const seconds = "must be a number of seconds from 1 to 86400"
	for body, want := range map[string]answer{
		`{"expiresIn":0}`:     invalid(t, "/expiresIn", seconds),
		`{"expiresIn":86401}`: invalid(t, "/expiresIn", seconds),
		`{"expiresIn":null}`:  invalid(t, "/expiresIn", "must not be null"),
		`{"expiresIn":"1"}`:   invalid(t, "/expiresIn", "must not be a JSON string"),
		`{"scope":"all"}`:     invalid(t, "/scope", "is not a known field"),
	} {
		same(t, body, want, s.call(t, "POST", location+"/client-token", body, header...))
	}
	same(t, "a query", invalid(t, "a", "is not a known parameter"), s.call(t, "POST", location+"/client-token?a=1", "", header...))
}

func TestCreateClientToken_NotFound(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, header := keyOf(t, s)
	_, location, _ := s.create(t, transferBody, header...)
	_, stranger := keyOf(t, s)
	gone := refused(t, 404, "NOT_FOUND", "The account has no such transfer.")
	same(t, "another account's", gone, s.call(t, "POST", location+"/client-token", "", stranger...))
	same(t, "no intent", gone, s.call(t, "POST", "/v2/transfers/none/client-token", "", header...))
}

// A token is not valid for longer than its key, and a key that has ended since the gateway verified it makes none.
func TestCreateClientToken_KeyEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	key, header := keyOf(t, s)
	_, location, _ := s.create(t, transferBody, header...)
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	pgtest.Exec(t, s.store, `UPDATE api_keys SET expires_at = $1 WHERE id = $2`, soon, key.ID)
	if _, expiresAt := s.mint(t, gatewaySecret, location, "", header...); !expiresAt.Equal(soon) {
		t.Errorf("it expires at %v, its key at %v", expiresAt, soon)
	}
	pgtest.Exec(t, s.store, `UPDATE api_keys SET deleted_at = now() WHERE id = $1`, key.ID)
	same(t, "a deleted key", refused(t, 403, "INVALID_API_KEY", "This API key is no longer valid. Use another one."),
		s.call(t, "POST", location+"/client-token", "", header...))
}

// While the shared secret changes, a gateway gets tokens of the secret that it has.
func TestCreateClientToken_Rotation(t *testing.T) {
	t.Parallel()
	const next = "the secret that gateways will have"
	s := start(t, func(c *settings) { c.api.Secrets = route.NewSecrets(next, gatewaySecret) })
	_, header := keyOf(t, s)
	_, location, _ := s.create(t, transferBody, header...)
	s.mint(t, gatewaySecret, location, "", header...)
	s.mint(t, next, location, "", append(header, "X-Gateway-Secret", next)...)
}

// The token is neither stored nor logged.
func TestCreateClientToken_Unseen(t *testing.T) {
	t.Parallel()
	s := start(t)
	key, header := keyOf(t, s)
	_, location, _ := s.create(t, transferBody, header...)
	s.mint(t, gatewaySecret, location, "", header...)
	if log := s.log.String(); strings.Contains(log, clienttoken.Prefix) || strings.Contains(log, fmt.Sprintf("%x", key.Hash)) {
		t.Errorf("the log has a token or its key's hash:\n%s", log)
	}
}
