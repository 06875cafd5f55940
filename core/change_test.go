package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	program "intents.internal/core"
	"intents.internal/core/postgres/pgtest"
	"intents.internal/pkg/asynctest"
)

// changed is a core that runs and follows a file of settings.
type changed struct {
	*process
	t    *testing.T
	file string
	// database is where core keeps everything, and asRole the same for another user.
	database, asRole string
	others           services
	// visitors have been there so far; each has an address and an account of its own.
	visitors atomic.Int64
}

func startChanging(t *testing.T) *changed {
	t.Helper()
	c := &changed{t: t, file: filepath.Join(t.TempDir(), "core.env"), database: pgtest.Database(t)}
	c.makeRole()
	c.others = startServices(t)
	// A replica that is none is looked at all the time, and that is all that is asked of it here.
	c.process = serve(t, c.database, append(c.others.settings(),
		"CORE_READ_DATABASE_URL="+c.database, "CORE_ENV_FILE="+c.file, "CORE_DRAIN_DELAY=0s", "CORE_ACCESS_LOG=false")...)
	return c
}

// set replaces the file and has it read at once.
func (c *changed) set(lines ...string) {
	c.t.Helper()
	text := strings.NewReplacer("$AS_ROLE", c.asRole, "$REDIS_AS_OTHER", c.others.redisAsOther(), "$OTHER_ISSUER", c.others.another.url).
		Replace(strings.Join(lines, "\n"))
	if err := os.WriteFile(c.file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		c.t.Fatal(err)
	}
}

// visitor is somebody new: an address and an e-mail address that nobody else has.
func (c *changed) visitor() (ip, email string) {
	n := c.visitors.Add(1)
	return fmt.Sprintf("198.51.%d.%d", n/250, n%250+1), fmt.Sprintf("visitor-%d@example.com", n)
}

// call makes a request as a gateway that has this secret does, from this address and with this cookie. A body makes it a POST.
func (c *changed) call(secret, ip, cookie, path, body string) (status int, newCookie string) {
	c.t.Helper()
	status, newCookie, _ = c.ask(secret, ip, cookie, path, body)
	return status, newCookie
}

// ask is call, with what was answered.
func (c *changed) ask(secret, ip, cookie, path, body string) (status int, newCookie, text string) {
	c.t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, "http://"+c.listen+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("X-Gateway-Secret", secret)
	request.Header.Set("X-Forwarded-For", ip)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Cookie", cookie)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	newCookie, _, _ = strings.Cut(response.Header.Get("Set-Cookie"), ";")
	return response.StatusCode, newCookie, string(read)
}

func (c *changed) signUp(ip, email string) (status int, cookie string) {
	return c.call(gatewaySecret, ip, "", "/auth/sign-up/email", `{"name":"Ann","email":"`+email+`","password":"correct horse battery"}`)
}

func (c *changed) guess(ip, email string) (status int) {
	status, _ = c.call(gatewaySecret, ip, "", "/auth/sign-in/email", `{"email":"`+email+`","password":"a wrong password"}`)
	return status
}

func (c *changed) makeKey(ip, cookie string) (status int) {
	status, _ = c.call(gatewaySecret, ip, cookie, "/auth/api-key/create", `{"name":"ci"}`)
	return status
}

func (c *changed) lets(secret string) bool {
	status, _ := c.call(secret, "", "", "/internal/ready", "")
	return status == http.StatusNoContent
}

const otherSecret = "another-secret-of-the-gateways-56789"

// change is a setting that bears the tag reload, what it is changed to, and what core does by that alone.
type change struct {
	variable string
	lines    []string
	holds    func(*changed) bool
}

// changes are all but changesElsewhere.
var changes = []change{
	{
		"CORE_GATEWAY_SECRET",
		[]string{"CORE_GATEWAY_SECRET=" + otherSecret},
		func(c *changed) bool { return c.lets(otherSecret) && !c.lets(gatewaySecret) },
	},
	{
		"CORE_GATEWAY_SECRET_PREVIOUS",
		[]string{"CORE_GATEWAY_SECRET_PREVIOUS=" + otherSecret},
		func(c *changed) bool { return c.lets(otherSecret) && c.lets(gatewaySecret) },
	},
	{
		"CORE_DATABASE_URL",
		[]string{"CORE_DATABASE_URL=$AS_ROLE"},
		(*changed).connects,
	},
	{
		"CORE_READ_DATABASE_URL",
		[]string{"CORE_READ_DATABASE_URL=$AS_ROLE"},
		(*changed).connects,
	},
	{
		"CORE_SIGN_UP",
		[]string{"CORE_SIGN_UP=closed"},
		func(c *changed) bool { status, _ := c.signUp(c.visitor()); return status == http.StatusForbidden },
	},
	{
		"CORE_SIGN_UP_PER_IP",
		[]string{"CORE_SIGN_UP_PER_IP=1"},
		func(c *changed) bool {
			ip, one := c.visitor()
			_, another := c.visitor()
			first, _ := c.signUp(ip, one)
			second, _ := c.signUp(ip, another)
			return first == http.StatusOK && second == http.StatusTooManyRequests
		},
	},
	{
		"CORE_SIGN_IN_PER_IP",
		[]string{"CORE_SIGN_IN_PER_IP=1"},
		func(c *changed) bool {
			ip, one := c.visitor()
			_, another := c.visitor()
			return c.guess(ip, one) == http.StatusUnauthorized && c.guess(ip, another) == http.StatusTooManyRequests
		},
	},
	{
		"CORE_SIGN_IN_PER_ACCOUNT",
		[]string{"CORE_SIGN_IN_PER_ACCOUNT=1"},
		func(c *changed) bool {
			one, email := c.visitor()
			another, _ := c.visitor()
			return c.guess(one, email) == http.StatusUnauthorized && c.guess(another, email) == http.StatusTooManyRequests
		},
	},
	{
		"CORE_SIGN_IN_PER_ACCOUNT_AND_IP",
		[]string{"CORE_SIGN_IN_PER_ACCOUNT_AND_IP=1"},
		func(c *changed) bool {
			one, email := c.visitor()
			another, _ := c.visitor()
			return c.guess(one, email) == http.StatusUnauthorized && c.guess(one, email) == http.StatusTooManyRequests &&
				c.guess(another, email) == http.StatusUnauthorized
		},
	},
	{
		"CORE_KEYS_PER_ACCOUNT",
		[]string{"CORE_KEYS_PER_ACCOUNT=1"},
		func(c *changed) bool {
			one, email := c.visitor()
			another, _ := c.visitor()
			_, cookie := c.signUp(one, email)
			return c.makeKey(one, cookie) == http.StatusOK && c.makeKey(another, cookie) == http.StatusTooManyRequests
		},
	},
	{
		"CORE_KEYS_PER_IP",
		[]string{"CORE_KEYS_PER_IP=1"},
		func(c *changed) bool {
			ip, one := c.visitor()
			_, another := c.visitor()
			_, cookie := c.signUp(ip, one)
			_, other := c.signUp(ip, another)
			return c.makeKey(ip, cookie) == http.StatusOK && c.makeKey(ip, other) == http.StatusTooManyRequests
		},
	},
}

// A running core works by every setting that says so, from the signal on, and by the one before when it is taken back.
func TestSettingsChangeWhileRunning(t *testing.T) {
	t.Parallel()
	c := startChanging(t)
	for _, change := range slices.Concat(changes, changesElsewhere) {
		if change.variable == "CORE_REDIS_URL" && !c.others.haveUsers(t) {
			continue
		}
		if change.holds(c) {
			t.Errorf("%s: what it is to change is so already", change.variable)
		}
		c.set(change.lines...)
		asynctest.Eventually(t, change.variable+" counts", func() bool { return change.holds(c) })
		c.set("# nothing")
		asynctest.Eventually(t, change.variable+" counts no more", func() bool { return !change.holds(c) })
	}
	for _, secret := range []string{otherSecret, "pass word", "pass%20word", otherClientSecret} {
		if log := c.out.String(); strings.Contains(log, secret) {
			t.Errorf("the log tells a secret:\n%s", log)
		}
	}
}

// The tag is on those settings and no others, so the reference in deploy/README.md tells the truth.
func TestWhatChangesWhileRunningSaysSo(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for _, c := range slices.Concat(changes, changesElsewhere) {
		tried[c.variable] = true
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[program.Config]()) {
		variable, tagged := field.Tag.Get("env"), field.Tag.Get("reload") != ""
		if tagged != tried[variable] {
			t.Errorf("%s: it says that it changes while core runs: %t; that is tried: %t", variable, tagged, tried[variable])
		}
	}
}

// Whoever still bears the secret of before is counted, so that it is known when it can go.
func TestPreviousSecretIsCounted(t *testing.T) {
	t.Parallel()
	c := startChanging(t)
	counted := func() string {
		response, err := http.Get("http://" + c.ops + "/metrics") //nolint:noctx // go test bounds it
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
	c.lets(gatewaySecret)
	if got := counted(); got != "0" {
		t.Errorf("with one secret %s requests bore the previous one", got)
	}
	c.set("CORE_GATEWAY_SECRET="+otherSecret, "CORE_GATEWAY_SECRET_PREVIOUS="+gatewaySecret)
	asynctest.Eventually(t, "both are let in", func() bool { return c.lets(otherSecret) })
	for range 3 {
		if !c.lets(gatewaySecret) || !c.lets(otherSecret) || c.lets("neither of them, but as long as both") {
			t.Fatal("a secret counts that should not, or the other way round")
		}
	}
	if got := counted(); got != "3" {
		t.Errorf("%s requests bore the previous secret, want 3", got)
	}
}

// Commands that end take the file as well: the password of the database may be in there alone.
func TestCommandsReadTheSettingsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "core.env")
	for text, want := range map[string]struct {
		code int
		says string
	}{
		"CORE_DATABASE_URL=" + pgtest.Unmigrated(t): {0, "applied "},
		"CORE_DATABSE_URL=postgres://hunter2@a/b":   {1, "CORE_ENV_FILE line 1: there is no setting CORE_DATABSE_URL\nCORE_DATABASE_URL is required"},
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
