package command_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"intents.internal/core/pgtest"
)

// visitors have called so far; each has an address and an e-mail address of its own.
var visitors atomic.Int64

func visitor() (ip, email string) {
	n := visitors.Add(1)
	return fmt.Sprintf("198.51.%d.%d", n/250, n%250+1), fmt.Sprintf("visitor-%d@example.com", n)
}

// tested is a core in a test.
type tested struct {
	*process
	t *testing.T
}

// call makes a request as a gateway with this secret does, from this address and with this cookie. A body makes it a POST.
func (p tested) call(secret, ip, cookie, path, body string) (status int, newCookie string) {
	p.t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.listen+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("X-Gateway-Secret", secret)
	request.Header.Set("X-Forwarded-For", ip)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Cookie", cookie)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	newCookie, _, _ = strings.Cut(response.Header.Get("Set-Cookie"), ";")
	return response.StatusCode, newCookie
}

func (p tested) signUp(ip, email string) (status int, cookie string) {
	p.t.Helper()
	return p.call(gatewaySecret, ip, "", "/auth/sign-up/email", `{"name":"Ann","email":"`+email+`","password":"correct horse battery"}`)
}

func (p tested) guess(ip, email string) (status int) {
	p.t.Helper()
	status, _ = p.call(gatewaySecret, ip, "", "/auth/sign-in/email", `{"email":"`+email+`","password":"a wrong password"}`)
	return status
}

func (p tested) makeKey(ip, cookie string) (status int) {
	p.t.Helper()
	status, _ = p.call(gatewaySecret, ip, cookie, "/auth/api-key/create", `{"name":"ci"}`)
	return status
}

func (p tested) accepts(secret string) bool {
	p.t.Helper()
	status, _ := p.call(secret, "", "", "/internal/ready", "")
	return status == http.StatusNoContent
}

const otherSecret = "another-secret-of-the-gateways-56789"

// Each setting limits what it says, and nothing that its neighbours limit.
func TestServe_AccessSettings(t *testing.T) {
	t.Parallel()
	const ok, limited, refused = http.StatusOK, http.StatusTooManyRequests, http.StatusUnauthorized
	database := pgtest.Database(t)
	for setting, got := range map[string]func(tested) []int{
		"CORE_SIGN_UP=closed": func(p tested) []int {
			ip, email := visitor()
			status, _ := p.signUp(ip, email)
			return []int{status, http.StatusForbidden}
		},
		"CORE_SIGN_UP_PER_IP=1": func(p tested) []int {
			ip, one := visitor()
			_, another := visitor()
			first, _ := p.signUp(ip, one)
			second, _ := p.signUp(ip, another)
			return []int{first, ok, second, limited}
		},
		"CORE_SIGN_IN_PER_IP=1": func(p tested) []int {
			ip, one := visitor()
			_, another := visitor()
			return []int{p.guess(ip, one), refused, p.guess(ip, another), limited}
		},
		"CORE_SIGN_IN_PER_ACCOUNT=1": func(p tested) []int {
			one, email := visitor()
			another, _ := visitor()
			return []int{p.guess(one, email), refused, p.guess(another, email), limited}
		},
		"CORE_SIGN_IN_PER_ACCOUNT_AND_IP=1": func(p tested) []int {
			one, email := visitor()
			another, _ := visitor()
			return []int{p.guess(one, email), refused, p.guess(one, email), limited, p.guess(another, email), refused}
		},
		"CORE_KEYS_PER_ACCOUNT=1": func(p tested) []int {
			one, email := visitor()
			another, _ := visitor()
			_, cookie := p.signUp(one, email)
			return []int{p.makeKey(one, cookie), ok, p.makeKey(another, cookie), limited}
		},
		"CORE_KEYS_PER_IP=1": func(p tested) []int {
			ip, one := visitor()
			_, another := visitor()
			_, cookie := p.signUp(ip, one)
			_, other := p.signUp(ip, another)
			return []int{p.makeKey(ip, cookie), ok, p.makeKey(ip, other), limited}
		},
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			// Nothing listens there, so core counts by itself.
			statuses := got(tested{serve(t, database, "CORE_REDIS_URL=redis://127.0.0.1:1/0", setting), t})
			for i := 0; i < len(statuses); i += 2 {
				if statuses[i] != statuses[i+1] {
					t.Errorf("answer %d is %d, want %d", i/2+1, statuses[i], statuses[i+1])
				}
			}
		})
	}
}

// While the shared secret is replaced core accepts two secrets, and counts requests with the previous one, so that operators know
// when it can go.
func TestServe_PreviousSecret(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	counted := func(p tested) string {
		response, err := http.Get("http://" + p.ops + "/metrics") //nolint:noctx // go test bounds it
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			if value, found := strings.CutPrefix(string(line), "intents_core_previous_secret_requests_total "); found {
				return strings.TrimSpace(value)
			}
		}
		return "nothing"
	}
	one := tested{serve(t, database), t}
	if !one.accepts(gatewaySecret) || one.accepts(otherSecret) || counted(one) != "0" {
		t.Errorf("with one secret %s requests used the previous one", counted(one))
	}
	two := tested{serve(t, database, "CORE_GATEWAY_SECRET_PREVIOUS="+otherSecret), t}
	for range 3 {
		if !two.accepts(gatewaySecret) || !two.accepts(otherSecret) || two.accepts("neither of them, but as long as both") {
			t.Fatal("core accepts another secret than these two, or refuses one of them")
		}
	}
	if got := counted(two); got != "3" {
		t.Errorf("%s requests used the previous secret, want 3", got)
	}
}

// Commands that end read the file as well: the password of the database may be in there alone.
func TestCommands_SettingsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "core.env")
	for text, want := range map[string]struct {
		code int
		says string
	}{
		"CORE_DATABASE_URL=" + pgtest.Unmigrated(t): {0, "applied "},
		"CORE_DATABSE_URL=postgres://hunter2@a/b":   {1, "CORE_ENV_FILE line 1: there is no setting CORE_DATABSE_URL; did you mean CORE_DATABASE_URL?\nCORE_DATABASE_URL is required"},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := core(t, "", []string{"CORE_ENV_FILE=" + file}, "migrate")
		if got.Code != want.code || !strings.Contains(got.Out+got.ErrOut, want.says) || strings.Contains(got.ErrOut, "hunter2") {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
