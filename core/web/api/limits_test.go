package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"intents.internal/core/identity/account"
)

// tooOften holds an answer to the shape of every 429.
func tooOften(t *testing.T, status int, header http.Header, text string) {
	t.Helper()
	var body struct {
		Code, Message string
		Details       struct{ TryAgainIn int64 }
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || status != 429 {
		t.Errorf("%d %s", status, text)
		return
	}
	want := fmt.Sprintf(`{"code":"RATE_LIMITED","message":"Too many tries were made. Wait as long as Retry-After says, then try again.",`+
		`"details":{"tryAgainIn":%d}}`, body.Details.TryAgainIn)
	wait := strconv.FormatInt((body.Details.TryAgainIn+999)/1000, 10)
	if text != want || body.Details.TryAgainIn < 1 || header.Get("Retry-After") != wait || header.Get("Set-Cookie") != "" {
		t.Errorf("%v %s", header, text)
	}
}

// Each case spends a bucket of one, and is refused for the next.
func TestLimits_Exceeded(t *testing.T) {
	t.Parallel()
	const guess = `{"email":"ann@example.com","password":"a wrong password"}`
	for name, c := range map[string]struct {
		change       func(*settings)
		first, again [2]string // path and body
		status       int       // of the first
	}{
		"sign-in of an address": {
			func(s *settings) { s.identity.Limits.SignInPerIP = 1 },
			[2]string{"/auth/sign-in/email", guess},
			[2]string{"/auth/sign-in/email", `{"email":"bob@example.com","password":"x"}`},
			401,
		},
		"sign-in to an account": {
			func(s *settings) { s.identity.Limits.SignInPerAccount = 1 },
			[2]string{"/auth/sign-in/email", guess},
			[2]string{"/auth/sign-in/email", `{"email":"ANN@example.com","password":"` + password + `"}`},
			401,
		},
		"sign-in to an account from an address": {
			func(s *settings) { s.identity.Limits.SignInPerAccountAndIP = 1 },
			[2]string{"/auth/sign-in/email", guess},
			[2]string{"/auth/sign-in/email", `{"email":"ANN@example.com","password":"` + password + `"}`},
			401,
		},
		"sign-up": {
			func(s *settings) { s.identity.Limits.SignUpPerIP = 2 }, // ann's own is the first
			[2]string{"/auth/sign-up/email", `{"email":"ann@example.com","password":"` + password + `"}`},
			[2]string{"/auth/sign-up/email", `{"email":"bob@example.com","password":"` + password + `"}`},
			422,
		},
		"keys of an account": {
			func(s *settings) { s.identity.Limits.KeysPerAccount = 1 },
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			200,
		},
		"keys of an address": {
			func(s *settings) { s.identity.Limits.KeysPerIP = 1 },
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			[2]string{"/auth/api-key/rotate", `{"keyId":"01a1fc6f-ce71-722b-898b-1af14ed7bb95"}`},
			200,
		},
		"rotation": {
			func(s *settings) { s.identity.Limits.KeysPerAccount = 1 },
			[2]string{"/auth/api-key/rotate", `{"keyId":"01a1fc6f-ce71-722b-898b-1af14ed7bb95"}`},
			[2]string{"/auth/api-key/create", `{"name":"ci"}`},
			404,
		},
		"change of the password": {
			func(s *settings) { s.identity.Limits.SignInPerAccountAndIP = 1 },
			[2]string{"/auth/change-password", changePassword("a wrong password", newPassword)},
			[2]string{"/auth/change-password", changePassword(password, newPassword)},
			400,
		},
		"mails to an address": {
			func(s *settings) { mailing(s); s.identity.Limits.MailsPerAddress = 1 },
			[2]string{"/auth/request-password-reset", `{"email":"nobody@example.com"}`},
			[2]string{"/auth/request-password-reset", `{"email":"NOBODY@example.com"}`},
			200,
		},
		"mails from an address": {
			func(s *settings) { mailing(s); s.identity.Limits.MailsPerIP = 2 }, // ann's own is the first
			[2]string{"/auth/request-password-reset", `{"email":"nobody@example.com"}`},
			[2]string{"/auth/request-password-reset", `{"email":"ann@example.com"}`},
			200,
		},
		"reset tokens": {
			func(s *settings) { s.identity.Limits.SignInPerIP = 1 },
			[2]string{"/auth/reset-password", resetPassword("a guess")},
			[2]string{"/auth/reset-password", resetPassword("another guess")},
			400,
		},
		"deletion": {
			func(s *settings) { s.identity.Limits.SignInPerAccountAndIP = 1 },
			[2]string{"/auth/delete-user", `{"password":"a wrong password"}`},
			[2]string{"/auth/delete-user", `{"password":"` + password + `"}`},
			400,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, c.change)
			ann := signUp(t, s, "ann@example.com")
			first := s.send(t, "POST", c.first[0], c.first[1], ann...)
			if text := readAll(t, first); first.StatusCode != c.status {
				t.Errorf("the first: %d %s, want %d", first.StatusCode, text, c.status)
			}
			next := s.send(t, "POST", c.again[0], c.again[1], ann...)
			text := readAll(t, next)
			tooOften(t, next.StatusCode, next.Header, text)
		})
	}
}

// What is refused for its form was no try.
func TestLimits_MalformedNotCounted(t *testing.T) {
	t.Parallel()
	s := start(t, func(s *settings) {
		s.identity.Limits.SignUpPerIP, s.identity.Limits.SignInPerIP, s.identity.Limits.KeysPerAccount = 1, 1, 1
	})
	for range 3 {
		for _, path := range []string{"/auth/sign-up/email", "/auth/sign-in/email"} {
			same(t, path, invalid(t, "/email", "must be an e-mail address such as name@example.com"),
				s.call(t, "POST", path, `{"email":"ann","password":"`+password+`"}`))
		}
	}
	ann := signUp(t, s, "ann@example.com")
	for range 3 {
		same(t, "a key without a name", invalid(t, "/name", "must have 1 to 64 characters"),
			s.call(t, "POST", "/auth/api-key/create", `{"name":" "}`, ann...))
	}
	createKey(t, s, `{"name":"ci"}`, ann)
}

// Whose turn to have a password checked does not come is told so, before the gateway gives up.
func TestLimits_PasswordsBusy(t *testing.T) {
	t.Parallel()
	s := start(t, func(s *settings) { s.identity.Passwords = &account.Passwords{} }) // it has no turn to give
	busy := refused(t, 503, "SERVICE_UNAVAILABLE", "Too many people are signing in; try again in a second.", "Retry-After", "1")
	for _, path := range []string{"/auth/sign-up/email", "/auth/sign-in/email"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			same(t, path, busy, s.call(t, "POST", path, `{"email":"ann@example.com","password":"`+password+`"}`))
		})
	}
}

// A flood of sign-ins waits for its turn instead of taking the memory and the processors: each password takes 19 MiB.
func TestSignIn_Flood(t *testing.T) {
	t.Parallel()
	hasher, err := account.NewPasswords() // of its own, so that no other test waits
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, func(s *settings) { s.identity.Passwords = hasher })
	ann := signUp(t, s, "ann@example.com")
	const flood = 40
	var before runtime.MemStats // the tests beside this one have memory of their own
	runtime.ReadMemStats(&before)
	var waiting sync.WaitGroup
	ended := make(chan struct{})
	statuses := make(chan int, flood)
	for i := range flood {
		waiting.Go(func() {
			response := s.send(t, "POST", "/auth/sign-in/email", fmt.Sprintf(`{"email":"%d@example.com","password":"a wrong password"}`, i))
			_ = response.Body.Close()
			statuses <- response.StatusCode
		})
	}
	go func() {
		waiting.Wait()
		close(ended)
	}()
	var peak uint64
	answered := 0
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		default:
		}
		if got := s.call(t, "GET", "/auth/get-session", "", ann...); got.Status != 200 || got.Body == nil {
			t.Fatalf("during the flood: %+v", got)
		}
		answered++
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		peak = max(peak, memory.HeapAlloc)
	}
	counts := map[int]int{}
	for range flood {
		counts[<-statuses]++
	}
	t.Logf("%d sessions read during the flood, at most %d MiB, sign-ins by status: %v", answered, peak>>20, counts)
	if counts[401] == 0 || counts[401]+counts[503] != flood {
		t.Errorf("sign-ins by status: %v; want 401, or 503 for those whose turn did not come", counts)
	}
	if answered < 10 {
		t.Errorf("%d sessions were read during the flood", answered)
	}
	if most := before.HeapAlloc + flood*19<<20/2; peak > most {
		t.Errorf("%d MiB in use", peak>>20)
	}
}

// Session routes have limits beside those of what they do: of a network without a session, and of a signed-in person's writes.
func TestLimits_SessionRoutes(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	refusedAtLast := func(method, path string, header ...string) {
		t.Helper()
		for range 10_000 {
			response := s.send(t, method, path, "", header...)
			if text := readAll(t, response); response.StatusCode == http.StatusTooManyRequests {
				tooOften(t, response.StatusCode, response.Header, text)
				return
			}
		}
		t.Errorf("%s %s is never refused", method, path)
	}
	refusedAtLast("GET", "/auth/get-session")
	if sessionID(t, s, ann) == "" {
		t.Error("who is signed in has no session")
	}
	refusedAtLast("POST", "/auth/revoke-other-sessions", ann...)
	if sessionID(t, s, ann) == "" {
		t.Error("a read is refused for writes")
	}
}
