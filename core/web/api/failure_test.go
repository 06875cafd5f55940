package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/testkit/asynctest"
)

// What nobody foresaw is a 500 whose code is the spec's and whose cause is in the log alone.
func TestFailure_Unexpected(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	ann := s.SignUp(t, "ann@example.com")
	pgtest.Exec(t, s.Store, `ALTER TABLE transfers RENAME TO elsewhere`)
	pgtest.Exec(t, s.Store, `ALTER TABLE api_keys RENAME TO elsewhere_too`)
	pgtest.Exec(t, s.Store, `ALTER TABLE key_changes RENAME TO elsewhere_as_well`)
	const transfers, internal = "The transfer service failed; try again later.", "Something went wrong here; try again later."
	for _, c := range []struct {
		method, path, body, code, message string
		header                            []string
	}{
		{"GET", "/v2/transfers", "", "TransferServiceError", transfers, account},
		{"GET", "/v2/transfers/" + uuid.NewString(), "", "TransferServiceError", transfers, account},
		{"POST", "/v2/transfers", webtest.TransferBody, "TransferServiceError", transfers, account},
		{"POST", "/auth/api-key/create", `{"name":"key"}`, "INTERNAL_ERROR", internal, ann},
		{"GET", "/auth/api-key/list", "", "INTERNAL_ERROR", internal, ann},
		{"POST", "/internal/keys/verify", `{"hash":"` + strings.Repeat("0", 64) + `"}`, "INTERNAL_ERROR", internal, nil},
	} {
		got := s.Call(t, c.method, c.path, c.body, c.header...)
		webtest.Same(t, c.method+" "+c.path, webtest.Refused(t, 500, c.code, c.message), got)
	}
	log := s.Log.String()
	if n := strings.Count(log, `does not exist`); n != 6 || strings.Count(log, `"level":"ERROR"`) != 6 {
		t.Errorf("%d of 6 causes are in the log:\n%s", n, log)
	}
}

func TestFailure_Panic(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *webtest.Settings) { c.API.Registry, c.Intents.Registry = nil, nil })
	registry := webtest.Refused(t, 500, "TokenRegistryServiceError", "The token registry could not be read; try again later.")
	for range 2 { // the process lives on
		webtest.Same(t, "tokens", registry, s.Call(t, "GET", "/v2/tokens", ""))
		webtest.Same(t, "chains", registry, s.Call(t, "GET", "/v2/chains", ""))
	}
	webtest.Same(t, "transfers", webtest.Refused(t, 500, "TransferServiceError", "The transfer service failed; try again later."),
		s.Call(t, "POST", "/v2/transfers", webtest.TransferBody, webtest.Keyed(uuid.New(), "test")...))
	if log := s.Log.String(); !strings.Contains(log, "panic: runtime error: invalid memory address") || !strings.Contains(log, "list_tokens.go") {
		t.Errorf("the log does not tell where the panic was:\n%s", log)
	}
}

func TestFailure_DatabaseDown(t *testing.T) {
	t.Parallel()
	gate := pgtest.NewGate(t, pgtest.Database(t))
	s := startOn(t, pgtest.Open(t, gate.URL))
	account, ann := webtest.Keyed(uuid.New(), "test"), s.SignUp(t, "ann@example.com")
	requests := []struct {
		method, path, body string
		header             []string
	}{
		{"GET", "/v2/transfers", "", account},
		{"GET", "/v2/transfers/" + uuid.NewString(), "", account},
		{"POST", "/v2/transfers", webtest.TransferBody, account},
		{"GET", "/auth/get-session", "", ann},
		{"POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"` + webtest.Password + `"}`, nil},
		{"POST", "/auth/sign-up/email", `{"email":"bob@example.com","password":"` + webtest.Password + `"}`, nil},
		{"POST", "/auth/sign-out", "", ann},
		{"POST", "/auth/api-key/create", `{"name":"key"}`, ann},
		{"POST", "/auth/api-key/delete", `{"keyId":"` + uuid.NewString() + `"}`, ann},
		{"POST", "/internal/keys/verify", `{"hash":"` + strings.Repeat("0", 64) + `"}`, nil},
		{"GET", "/internal/key-changes", "", nil},
	}
	gate.Shut()
	before := s.Log.String()
	for _, r := range requests {
		got := s.Call(t, r.method, r.path, r.body, r.header...)
		webtest.Same(t, r.method+" "+r.path, webtest.Refused(t, 503, "SERVICE_UNAVAILABLE", "The database is not available; try again in a second.", "Retry-After", "1"), got)
	}
	// One line a cause and second says it, with the number of those that it stands for, and the access log has the others.
	for range 300 {
		s.Call(t, "GET", "/v2/transfers", "", account...)
	}
	lines := strings.TrimPrefix(s.Log.String(), before)
	if failed, all := strings.Count(lines, `"level":"ERROR"`), strings.Count(lines, `"status":503`); failed == 0 || failed > all/2 || !strings.Contains(lines, `"suppressed":`) {
		t.Errorf("%d of %d lines are errors:\n%s", failed, all, lines)
	}
	for _, path := range []string{"/v2/tokens", "/v2/chains", "/openapi.json"} {
		if got := s.Call(t, "GET", path, ""); got.Status != 200 {
			t.Errorf("%s, which needs no database: %+v", path, got)
		}
	}
	gate.Heal()
	for _, r := range requests {
		asynctest.Eventually(t, "after the outage "+r.method+" "+r.path, func() bool {
			return s.Call(t, r.method, r.path, r.body, r.header...).Status < http.StatusInternalServerError
		})
	}
}

// Only a broken gateway leaves the identity out; a client sees that as core's failure.
func TestGatewayIdentity_Missing(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	for name, header := range map[string][]string{
		"none":               nil,
		"no account":         append(webtest.Keyed(uuid.New(), "test"), "X-Account-Id", ""),
		"not an account":     append(webtest.Keyed(uuid.New(), "test"), "X-Account-Id", "me"),
		"no key":             append(webtest.Keyed(uuid.New(), "test"), "X-Key-Id", ""),
		"no environment":     append(webtest.Keyed(uuid.New(), "test"), "X-Key-Env", ""),
		"not an environment": append(webtest.Keyed(uuid.New(), "test"), "X-Key-Env", "main"),
	} {
		want := webtest.Refused(t, 500, "TransferServiceError", "The transfer service failed; try again later.")
		webtest.Same(t, name+", list", want, s.Call(t, "GET", "/v2/transfers", "", header...))
		webtest.Same(t, name+", create", want, s.Call(t, "POST", "/v2/transfers", webtest.TransferBody, header...))
		webtest.Same(t, name+", get", want, s.Call(t, "GET", "/v2/transfers/"+uuid.NewString(), "", header...))
	}
	if got := s.Call(t, "GET", "/v2/transfers", "", account...); got.Status != 200 {
		t.Errorf("whole: %+v", got)
	}
}
