package auth_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// What better-auth's clients send besides is taken and ignored.
func TestBetterAuth_IgnoredMembers(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	made := s.Call(t, "POST", "/auth/api-key/create", `{"name":"ci","prefix":"mine_","metadata":{"team":["a",1]}}`, ann...)
	body, _ := made.Body.(map[string]any)
	if made.Status != 200 || body["prefix"] != "sk_test_" {
		t.Errorf("a key with a prefix and metadata: %+v", made)
	}
	id := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM api_keys`).String()
	if got := s.Call(t, "POST", "/auth/api-key/update", `{"keyId":"`+id+`","name":"other","metadata":null}`, ann...); got.Status != 200 {
		t.Errorf("an update with metadata: %+v", got)
	}
	verify := func(email string) webtest.Answer {
		return s.Call(t, "POST", "/auth/siwe/verify", `{"message":"x","signature":"0x00","walletAddress":"`+webtest.Alice+`"`+email+`}`)
	}
	webtest.Same(t, "an address of a wallet's", verify(""), verify(`,"email":"ann@example.com"`))
}
