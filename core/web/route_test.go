package web_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

func TestRoutes_GatewaySecret(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	denied := webtest.Refused(t, 401, "NOT_A_GATEWAY", "Only gateways may call this address; call the gateway's.", wire.HeaderCore, wire.CoreRefused)
	for _, c := range []struct{ method, path string }{
		{"GET", "/v2/tokens"},
		{"GET", "/v2/chains"},
		{"GET", "/v2/transfers"},
		{"POST", "/v2/transfers"},
		{"GET", "/openapi.json"},
		{"GET", "/auth/get-session"},
		{"POST", "/auth/sign-up/email"},
		{"POST", "/internal/keys/verify"},
		{"GET", "/internal/key-changes"},
		{"POST", "/internal/usage"},
		{"GET", "/nowhere"},
	} {
		for _, secret := range []string{"", "wrong", webtest.GatewaySecret[:len(webtest.GatewaySecret)-1], webtest.GatewaySecret + "x", strings.ToUpper(webtest.GatewaySecret)} {
			got := s.Call(t, c.method, c.path, "", append(webtest.Keyed(uuid.New(), "test"), "X-Gateway-Secret", secret)...)
			webtest.Same(t, c.method+" "+c.path+" with secret "+secret, denied, got)
		}
	}
}

func TestRoutes_UnknownPath(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	for _, c := range []struct{ method, path string }{
		{"GET", "/x"},
		{"GET", "/v2"},
		{"GET", "/v2/tokens/"},
		{"GET", "/v2/Tokens"},
		{"GET", "/v1/tokens"},
		{"GET", "/v2/transfers/a/b"},
		{"GET", "/auth/"},
		{"GET", "/console"},
		{"GET", "/console/keys"},
		{"GET", "/internal"},
		{"GET", "/internal/keys/verify"},
	} {
		webtest.Same(t, c.method+" "+c.path, webtest.Refused(t, 404, "NOT_FOUND", "There is nothing at this path."), s.Call(t, c.method, c.path, "", webtest.Keyed(uuid.New(), "test")...))
	}
}

func TestRoutes_MethodNotAllowed(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	for _, path := range wire.Paths {
		allow := path.Methods
		if allow[0] == http.MethodGet {
			allow = slices.Insert(slices.Clone(allow), 1, http.MethodHead)
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if slices.Contains(allow, method) {
				continue
			}
			wanted := webtest.Refused(t, 405, "METHOD_NOT_ALLOWED", "The path takes another method; see Allow.", "Allow", strings.Join(allow, ", "))
			webtest.Same(t, method+" "+path.Pattern, wanted, s.Call(t, method, path.Pattern, "{}", webtest.Keyed(uuid.New(), "test")...))
		}
	}
	webtest.Same(t, "no such session route", webtest.Refused(t, 404, "NOT_FOUND", "There is nothing at this path."), s.Call(t, "POST", "/auth/sign-up", "{}"))
}

// The console answers for itself, protection against other sites and compression included, and is logged by its own routes.
func TestConsole(t *testing.T) {
	t.Parallel()
	pages := http.NewServeMux()
	pages.HandleFunc("/console/keys/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`"` + r.PathValue("id") + strings.Repeat(" ", 4096) + `"`))
	})
	pages.HandleFunc("/console", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	s := webtest.Start(t, func(c *webtest.Settings) { c.API.Console = pages })
	page := webtest.Want(t, 200, `"7`+strings.Repeat(" ", 4096)+`"`)
	webtest.Same(t, "a page", page, s.Call(t, "POST", "/console/keys/7", "", "Origin", "http://evil.example", "Accept-Encoding", "gzip"))
	webtest.Same(t, "its root", webtest.Want(t, 418, ""), s.Call(t, "GET", "/console", ""))
	webtest.Same(t, "without a gateway", webtest.Refused(t, 401, "NOT_A_GATEWAY", "Only gateways may call this address; call the gateway's.", wire.HeaderCore, wire.CoreRefused),
		s.Call(t, "GET", "/console/keys/7", "", "X-Gateway-Secret", ""))
	if log := s.Log.String(); !strings.Contains(log, `"route":"/console/keys/{id}"`) || strings.Contains(log, "/console/keys/7") {
		t.Errorf("the log:\n%s", log)
	}
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	response := s.Send(t, "GET", "/openapi.json", "")
	text := webtest.ReadAll(t, response)
	var document struct{ OpenAPI string }
	if err := json.Unmarshal([]byte(text), &document); err != nil || document.OpenAPI != "3.1.0" {
		t.Errorf("openapi %q, %v", document.OpenAPI, err)
	}
	got := []string{response.Status, response.Header.Get("Content-Type"), response.Header.Get("Cache-Control")}
	if strings.Join(got, "; ") != "200 OK; application/json; public, max-age=300" {
		t.Errorf("got %q", got)
	}
}

func TestNew_InvalidPublicURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "intents.example", "https://intents.example/path"} {
		if _, err := web.New(web.Config{Metrics: telemetry.NewRegistry(), PublicURL: url}); err == nil {
			t.Errorf("%q is taken", url)
		}
	}
}

// What is secret never reaches the log, whatever the answer was.
func TestAccessLog_NoSecrets(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	account := webtest.Keyed(uuid.New(), "test")
	ann := s.SignUp(t, "ann@example.com")
	cookie := strings.TrimPrefix(ann[1], "intents.session=")
	key := s.CreateKey(t, `{"name":"the name of a key"}`, ann)
	hash := webtest.HashOf(key.Key)
	verify := `{"hash":"` + hash + `"}`
	send := func(method, path, body string, header ...string) {
		t.Helper()
		s.Call(t, method, path, body, header...)
	}
	send("POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+webtest.Password+`"}`)
	send("POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"a wrong password"}`)
	send("GET", "/auth/get-session", "", ann...)
	send("POST", "/internal/keys/verify", verify)
	send("POST", "/v2/transfers", webtest.TransferBody, account...)
	send("POST", "/v2/transfers", `{"reference":"a body that is refused"}`, account...)
	send("GET", "/v2/tokens?chain-id="+key.Key, "", append(account, "X-Api-Key", key.Key)...)
	for _, table := range []string{"transfers", "api_keys", "sessions", "accounts"} {
		pgtest.Exec(t, s.Store, `ALTER TABLE `+table+` RENAME TO former_`+table)
	}
	send("POST", "/v2/transfers", webtest.TransferBody, append(account, "X-Request-Id", "the-last", "Idempotency-Key", "order-1")...)
	send("POST", "/internal/keys/verify", verify)
	send("GET", "/auth/get-session", "", ann...)
	send("POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+webtest.Password+`"}`)

	log := s.Log.String()
	for what, secret := range map[string]string{
		"a key": key.Key, "a key's random part": key.Key[8:], "a key's hash": hash, "the session": cookie, "the gateway's secret": webtest.GatewaySecret,
		"the session's hash": webtest.HashOf(cookie), "a password": webtest.Password, "a wrong password": "a wrong password", "an e-mail address": "ann@example.com",
		"a body": "a body that is refused", "an account in a body": webtest.Alice, "a key's name": "the name of a key",
	} {
		if strings.Contains(log, secret) {
			t.Errorf("%s is in the log:\n%s", what, log)
		}
	}
	last := strings.Split(strings.TrimSpace(log), "\n")
	var line map[string]any
	for _, text := range last {
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Errorf("%v in %s", err, text)
		}
		if line["request_id"] == "the-last" {
			break
		}
	}
	if line["route"] != "POST /v2/transfers" || line["status"] != 500.0 || line["msg"] != "request" || line["key_id"] != account[3] || line["error"] == nil {
		t.Errorf("the line of a failed request: %v", line)
	}
}
