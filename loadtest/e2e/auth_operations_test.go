package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// sessionOperations are the operations below /auth as openapi.json has them.
func sessionOperations(t *testing.T) (all []sessionOperation) {
	t.Helper()
	held, err := agreed()
	if err != nil {
		t.Fatal(err)
	}
	paths, _ := held.document["paths"].(map[string]any)
	for path := range paths {
		for _, method := range []string{"get", "post"} {
			at := "/paths/" + escape(path) + "/" + method
			if !strings.HasPrefix(path, "/auth/") || held.value("/paths/"+escape(path), method) == nil {
				continue
			}
			security, _ := held.value(at, "security").([]any)
			strangers := held.value(at+"/responses", "401") == nil
			required, _ := held.value(held.resolve(at, "requestBody"), "required").(bool)
			all = append(all, sessionOperation{strings.ToUpper(method), path, len(security) > 0 && !strangers, required})
		}
	}
	return all
}

type sessionOperation struct {
	method, path     string
	signedIn, bodied bool
}

// What every session route refuses alike: strangers, other sites, and bodies that are not what they should be.
func TestSessionRoutes_Refusals(t *testing.T) {
	t.Parallel()
	operations := sessionOperations(t)
	if len(operations) < 19 {
		t.Errorf("openapi.json has only %d session routes", len(operations))
	}
	somebody, stranger := newPerson(t, running.Env().GatewayURL), browserClient(t)
	refuse := func(who *client, o sessionOperation, body any, status int, code string, headers ...string) {
		a := who.do(o.method, o.path, body, headers...)
		if a.Status != status || !strings.Contains(string(a.Body), `"code":"`+code+`"`) {
			t.Errorf("%s %s %v: %d %s, want %d %s", o.method, o.path, headers, a.Status, a.Body, status, code)
		}
	}
	for _, o := range operations {
		if o.signedIn {
			refuse(stranger, o, nil, 401, "UNAUTHORIZED")
		}
		if o.method == http.MethodPost {
			refuse(somebody.client, o, `{}`, 403, "CROSS_ORIGIN_REQUEST", "Origin", "https://elsewhere.example", "Sec-Fetch-Site", "cross-site")
			refuse(somebody.client, o, `{}`, 403, "CROSS_ORIGIN_REQUEST", "Origin", "https://elsewhere.example")
			refuse(somebody.client, sessionOperation{http.MethodGet, o.path, false, false}, nil, 405, "METHOD_NOT_ALLOWED")
		}
		if o.bodied {
			refuse(somebody.client, o, `name=x`, 415, "UNSUPPORTED_MEDIA_TYPE", "Content-Type", "application/x-www-form-urlencoded")
			refuse(somebody.client, o, `{"name":"`+strings.Repeat("x", 17<<10)+`"}`, 413, "PAYLOAD_TOO_LARGE")
			refuse(somebody.client, o, `{"name":"`+strings.Repeat("x", 60<<10)+`"}`, 413, "PAYLOAD_TOO_LARGE")
			refuse(somebody.client, o, `{`, 400, "INVALID_REQUEST")
			refuse(somebody.client, o, `{"nobodyKnowsThis":1}`, 400, "INVALID_REQUEST")
		}
	}
	if a := somebody.do(http.MethodGet, "/auth/get-session", nil); string(a.Body) == "null" {
		t.Error("a refused request signed somebody out")
	}
}

// Every other status that the session routes have.
func TestSessionRoutes_EveryStatus(t *testing.T) {
	t.Parallel()
	somebody := newPerson(t, running.Env().GatewayURL)
	key, expired := somebody.newKey(t), somebody.newKey(t)
	execute(t, `UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = $1`, expired.ID)
	of := func(id string, more ...any) map[string]any {
		body := map[string]any{"keyId": id}
		for i := 0; i < len(more); i += 2 {
			body[more[i].(string)] = more[i+1] //nolint:forcetypeassert // names and values in turn
		}
		return body
	}
	const nobodys = "01a1fc5d-1017-7f12-bb7c-34456ca20bc2"
	wallet := map[string]any{"walletAddress": alice, "chainId": 1}
	unsigned := map[string]any{"message": "x", "signature": "0x", "walletAddress": alice, "chainId": 1}
	for _, c := range []struct {
		method, path string
		body         any
		status       int
	}{
		{"GET", "/auth/api-key/list?limit=1&offset=1&sortBy=name&sortDirection=desc", nil, 200},
		{"GET", "/auth/api-key/list?limit=-1", nil, 400},
		{"GET", "/auth/api-key/list?sortBy=hash", nil, 400},
		{"GET", "/auth/api-key/get?id=" + key.ID, nil, 200},
		{"GET", "/auth/api-key/get?id=" + nobodys, nil, 404},
		{"GET", "/auth/api-key/get?id=" + key.ID + "&id=" + key.ID, nil, 400},
		{"POST", "/auth/api-key/update", of(key.ID), 400},
		{"POST", "/auth/api-key/update", of(key.ID, "expiresIn", 0), 400},
		{"POST", "/auth/api-key/update", of(key.ID, "name", "renamed", "enabled", true, "expiresIn", 60), 200},
		{"POST", "/auth/api-key/update", of(key.ID, "expiresIn", nil), 200},
		{"POST", "/auth/api-key/update", of(nobodys, "enabled", true), 404},
		{"POST", "/auth/api-key/rotate", of(expired.ID), 409},
		{"POST", "/auth/api-key/rotate", of(nobodys), 404},
		{"POST", "/auth/api-key/rotate", of(key.ID, "gracePeriod", 86401), 400},
		{"POST", "/auth/api-key/rotate", of(key.ID, "gracePeriod", 60), 200},
		{"POST", "/auth/api-key/rotate", of(key.ID, "gracePeriod", 60), 409},
		{"POST", "/auth/api-key/update", of(key.ID, "expiresIn", 3600), 409},
		{"POST", "/auth/api-key/delete", of(key.ID), 200},
		{"POST", "/auth/api-key/delete", of(key.ID), 404},
		{"GET", "/auth/list-sessions", nil, 200},
		{"POST", "/auth/revoke-session", map[string]any{"token": nobodys}, 200},
		{"POST", "/auth/revoke-other-sessions", map[string]any{}, 200},
		{"POST", "/auth/siwe/nonce", wallet, 200},
		{"POST", "/auth/siwe/nonce", map[string]any{"walletAddress": "0x1"}, 400},
		{"POST", "/auth/siwe/verify", unsigned, 400},
		{"POST", "/auth/sign-in/oauth2", map[string]any{"providerId": "oidc"}, 404},
		{"GET", "/auth/oauth2/callback/oidc?code=x&state=y", nil, 404},
		{"GET", "/auth/list-accounts", nil, 200},
		{"POST", "/auth/oauth2/link", map[string]any{"providerId": "oidc"}, 404},
		{"POST", "/auth/siwe/link", unsigned, 400},
		{"POST", "/auth/unlink-account", map[string]any{"providerId": "siwe"}, 400},
		{"POST", "/auth/change-password", map[string]any{"currentPassword": "wrong horse battery", "newPassword": "staple correct horse"}, 400},
		{"POST", "/auth/change-password", map[string]any{"currentPassword": somebody.password, "newPassword": "short"}, 400},
		{"POST", "/auth/change-password", map[string]any{"currentPassword": somebody.password, "newPassword": somebody.password}, 200},
		{"POST", "/auth/request-password-reset", map[string]any{"email": "nobody"}, 400},
		{"POST", "/auth/request-password-reset", map[string]any{"email": "nobody@example.com", "redirectTo": "/"}, 200},
		{"POST", "/auth/send-verification-email", map[string]any{"email": somebody.email}, 400},
		{"GET", "/auth/verify-email?token=x", nil, 401},
		{"GET", "/auth/verify-email?token=x&callbackURL=https://elsewhere.example", nil, 400},
		{"POST", "/auth/change-email", map[string]any{"newEmail": somebody.email}, 400},
		{"POST", "/auth/change-email", map[string]any{"newEmail": "new-" + somebody.email, "callbackURL": "/app"}, 200},
		{"POST", "/auth/reset-password", map[string]any{"token": "x", "newPassword": "staple correct horse"}, 400},
		{"POST", "/auth/delete-user", map[string]any{"password": "wrong horse battery"}, 400},
		{"POST", "/auth/revoke-sessions", map[string]any{}, 200},
		{"GET", "/auth/get-session", nil, 200},
		{"GET", "/auth/list-sessions", nil, 401},
	} {
		if a := somebody.do(c.method, c.path, c.body); a.Status != c.status {
			t.Errorf("%s %s %v: %d %s, want %d", c.method, c.path, c.body, a.Status, a.Body, c.status)
		}
	}
}

// Who guesses a password is stopped, with the time to wait, whether the account exists or not, and by whichever route.
func TestLimit_PasswordGuesses(t *testing.T) {
	t.Parallel()
	somebody := newPerson(t, running.Env().GatewayURL)
	wrong := map[string]any{"email": somebody.email, "password": "wrong horse battery"}
	nobody := map[string]any{"email": fmt.Sprintf("nobody-%d@example.com", time.Now().UnixNano()), "password": "wrong horse battery"}
	for name, guess := range map[string]struct {
		path   string
		body   any
		status int
	}{
		"somebody":    {"/auth/sign-in/email", wrong, 401},
		"nobody":      {"/auth/sign-in/email", nobody, 401},
		"from inside": {"/auth/delete-user", map[string]any{"password": "wrong horse battery"}, 400},
	} {
		who := browserClient(t)
		if name == "from inside" {
			who = newPerson(t, running.Env().GatewayURL).client
		}
		guesses := 0
		a := who.do(http.MethodPost, guess.path, guess.body)
		for ; a.Status == guess.status && guesses < 20; guesses++ {
			a = who.do(http.MethodPost, guess.path, guess.body)
		}
		got := expect[failure](t, a, 429)
		if milliseconds, _ := got.Details["tryAgainIn"].(float64); got.Code != "RATE_LIMITED" || milliseconds <= 0 || a.Header.Get("Retry-After") == "" || guesses < 9 {
			t.Errorf("%s, after %d guesses: %+v, Retry-After %q", name, guesses, got, a.Header.Get("Retry-After"))
		}
	}
	if a := somebody.do(http.MethodGet, "/auth/get-session", nil); string(a.Body) == "null" {
		t.Error("somebody else's guesses ended a session")
	}
}

// A name of a megabyte is refused long before its end has come, and the answer must not be lost with the connection.
func TestCreateKey_MegabyteName(t *testing.T) {
	t.Parallel()
	somebody := newPerson(t, running.Env().GatewayURL)
	for range 10 {
		a := somebody.do(http.MethodPost, "/auth/api-key/create", `{"name":"`+strings.Repeat("x", 1<<20)+`"}`)
		if got := expect[failure](t, a, 413); got.Code != "PAYLOAD_TOO_LARGE" {
			t.Errorf("%+v", got)
		}
	}
}
