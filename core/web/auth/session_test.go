package auth_test

import (
	"fmt"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

const (
	cookieSet     = "intents.session=<>; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"
	deviceSet     = "intents.device=<>; Path=/; Max-Age=34560000; HttpOnly; SameSite=Lax"
	cookieCleared = "intents.session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
)

func user(name, email string) string {
	return fmt.Sprintf(`{"id":"<id>","name":%q,"email":%q,"emailVerified":false,"image":null,"createdAt":"<time>","updatedAt":"<time>"}`, name, email)
}

func signedIn(t *testing.T, name, email string) webtest.Answer {
	t.Helper()
	return webtest.Want(t, 200, `{"redirect":false,"token":null,"user":`+user(name, email)+`}`, "Set-Cookie", cookieSet+"\n"+deviceSet, "Cache-Control", "no-store")
}

func TestSignUp(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	for request, expected := range map[string]webtest.Answer{
		`{"email":"ann@example.com","password":"x9Kq-2vT","name":"Ann"}`:                                                                             signedIn(t, "Ann", "ann@example.com"),
		`{"email":"Bob@Example.com","password":"` + strings.Repeat("é", 128) + `","name":"  Bob ","image":null,"callbackURL":"/","rememberMe":true}`: signedIn(t, "Bob", "bob@example.com"),
		`{"email":"no-name@example.com","password":"x9Kq-2vT"}`:                                                                                      signedIn(t, "no-name@example.com", "no-name@example.com"),
		`{"email":"c@example.com","password":"1234567","name":"C"}`:                                                                                  webtest.Invalid(t, "/password", "must have 8 to 128 characters"),
		`{"email":"c@example.com","password":"x9Kq-2vT","name":"` + strings.Repeat("n", 129) + `"}`:                                                  webtest.Invalid(t, "/name", "must have 1 to 128 characters"),
		`{"email":"not an address","password":"x9Kq-2vT","name":"C"}`:                                                                                webtest.Invalid(t, "/email", "must be an e-mail address such as name@example.com"),
		`{"password":"x9Kq-2vT","name":"C"}`:                                                                                                         webtest.Invalid(t, "/email", "must be an e-mail address such as name@example.com"),
		`{"email":"c@example.com","password":"x9Kq-2vT","name":"C","role":"admin"}`:                                                                  webtest.Invalid(t, "/role", "is not a known field"),
		`{"email":"c@example.com","email":"d@example.com","password":"x9Kq-2vT"}`:                                                                    webtest.Invalid(t, "/email", "…"),
		`{"email":"c@example.com","password":12345678}`:                                                                                              webtest.Invalid(t, "/password", "must not be a JSON number"),
		`{"email":"c@example.com","password":"x9Kq-2vT"} {}`:                                                                                         webtest.Invalid(t, "", "…"),
		`[]`: webtest.Invalid(t, "", "must be an object"),
		`{`:  webtest.Invalid(t, "", "…"),
	} {
		got := s.Call(t, "POST", "/auth/sign-up/email", request)
		if got.Status == 400 {
			got = webtest.MaskMessages(got, []string{"", firstMessage(expected)})
		}
		webtest.Same(t, request, expected, got)
	}
	taken := webtest.Refused(t, 422, "USER_ALREADY_EXISTS", "An account with this e-mail address exists; sign in or use another.")
	webtest.Same(t, "taken", taken, s.Call(t, "POST", "/auth/sign-up/email", `{"email":"ANN@example.com","password":"T2vq-9kX","name":"A"}`))
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM accounts`); n != 3 {
		t.Errorf("%d accounts", n)
	}
	if plain := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM accounts WHERE password_hash NOT LIKE '$argon2id$%'`); plain != 0 {
		t.Errorf("%d passwords are not hashed with Argon2id", plain)
	}
}

func firstMessage(a webtest.Answer) string {
	details, _ := a.Body.(map[string]any)["details"].(map[string]any)
	issues, _ := details["issues"].([]any)
	if len(issues) == 0 {
		return ""
	}
	return issues[0].(map[string]any)["message"].(string)
}

func TestSignUp_Closed(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, func(c *webtest.Settings) { c.Identity.SignUpOpen = false })
	webtest.Same(t, "answer", webtest.Refused(t, 403, "SIGN_UP_CLOSED", "Sign-up is closed; ask the operator for an account."),
		s.Call(t, "POST", "/auth/sign-up/email", `{"email":"ann@example.com","password":"12345678","name":"Ann"}`))
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM accounts`); n != 0 {
		t.Errorf("%d accounts", n)
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	s.SignUp(t, "ann@example.com")
	s.SignUp(t, "disabled@example.com")
	pgtest.Exec(t, s.Store, `UPDATE accounts SET disabled_at = now() WHERE email = 'disabled@example.com'`)
	denied := webtest.Refused(t, 401, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password.")
	for request, expected := range map[string]webtest.Answer{
		`{"email":"ann@example.com","password":"` + webtest.Password + `"}`:                                         signedIn(t, "Ann", "ann@example.com"),
		`{"email":"ANN@example.com","password":"` + webtest.Password + `","rememberMe":true,"callbackURL":"/home"}`: signedIn(t, "Ann", "ann@example.com"),
		`{"email":"ann@example.com","password":"` + webtest.Password + ` "}`:                                        denied,
		`{"email":"ann@example.com","password":""}`:                                                                 denied,
		`{"email":"ann@example.com"}`:                                                                               denied,
		`{"email":"nobody@example.com","password":"` + webtest.Password + `"}`:                                      denied,
		`{"email":"disabled@example.com","password":"` + webtest.Password + `"}`:                                    denied,
		`{"email":"nobody@example.com","password":"no account has this password"}`:                                  denied,
		`{"email":"ann","password":"` + webtest.Password + `"}`:                                                     webtest.Invalid(t, "/email", "must be an e-mail address such as name@example.com"),
		`{"email":"ann@example.com","password":"` + webtest.Password + `","admin":true}`:                            webtest.Invalid(t, "/admin", "is not a known field"),
	} {
		webtest.Same(t, request, expected, s.Call(t, "POST", "/auth/sign-in/email", request))
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	nobody := webtest.Want(t, 200, "null", "Cache-Control", "no-store")
	get := func(header ...string) webtest.Answer { return s.Call(t, "GET", "/auth/get-session", "", header...) }
	ann := s.SignUp(t, "ann@example.com")

	response := s.Send(t, "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+webtest.Password+`"}`,
		append(ann, "X-Forwarded-For", "203.0.113.7", "User-Agent", "Browser/1.0 "+strings.Repeat("x", 300))...)
	webtest.ReadAll(t, response)
	cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
	again := []string{"Cookie", cookie}
	webtest.Same(t, "session", webtest.Want(t, 200, `{"session":{"id":"<id>","token":"<id>","userId":"<id>","activeOrganizationId":"<id>","ipAddress":"203.0.113.7",
		"userAgent":"Browser/1.0 `+strings.Repeat("x", 244)+`","expiresAt":"<time>","createdAt":"<time>","updatedAt":"<time>"},
		"user":`+user("Ann", "ann@example.com")+`}`, "Cache-Control", "no-store"), get(again...))
	webtest.Same(t, "the session before the sign-in", nobody, get(ann...))
	webtest.Same(t, "no cookie", nobody, get())
	webtest.Same(t, "a guess", nobody, get("Cookie", "intents.session=guess"))
	webtest.Same(t, "a cookie of another name", nobody, get("Cookie", strings.Replace(cookie, "intents.session", "__Host-intents.session", 1)))
	if stored := pgtest.LookUp[string](t, s.Store, `SELECT encode(token_hash, 'hex') FROM sessions`); stored != webtest.HashOf(cookie[len("intents.session="):]) {
		t.Errorf("the database keeps %s, want the token's hash", stored)
	}

	out := webtest.Want(t, 200, `{"success":true}`, "Set-Cookie", cookieCleared)
	webtest.Same(t, "sign out", out, s.Call(t, "POST", "/auth/sign-out", "", again...))
	webtest.Same(t, "signed out", nobody, get(again...))
	webtest.Same(t, "sign out again", out, s.Call(t, "POST", "/auth/sign-out", "", again...))
	webtest.Same(t, "sign out without a session", out, s.Call(t, "POST", "/auth/sign-out", ""))
}

func TestSession_CookieOverTLS(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, func(c *webtest.Settings) { c.API.PublicURL = "https://intents.example" })
	response := s.Send(t, "POST", "/auth/sign-up/email", `{"email":"ann@example.com","password":"`+webtest.Password+`"}`)
	webtest.ReadAll(t, response)
	set := response.Header.Get("Set-Cookie")
	want := "__Host-intents.session=<>; Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax\n" +
		"__Host-intents.device=<>; Path=/; Max-Age=34560000; HttpOnly; Secure; SameSite=Lax"
	if got := webtest.Changing.ReplaceAllString(strings.Join(response.Header["Set-Cookie"], "\n"), "<$1>"); got != want {
		t.Errorf("got %s", got)
	}
	cookie, _, _ := strings.Cut(set, ";")
	if got := s.Call(t, "GET", "/auth/get-session", "", "Cookie", cookie); got.Body == nil {
		t.Errorf("the cookie has no session: %+v", got)
	}
	if got := s.Call(t, "GET", "/auth/get-session", "", "Cookie", strings.TrimPrefix(cookie, "__Host-")); got.Body != nil {
		t.Errorf("a cookie that a sibling domain could set has a session: %+v", got)
	}
}

func TestCrossOrigin_Refused(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	denied := webtest.Refused(t, 403, "CROSS_ORIGIN_REQUEST", "The request came from another site; open this one and try again.")
	for name, header := range map[string][]string{
		"Sec-Fetch-Site: cross-site": {"Sec-Fetch-Site", "cross-site"},
		"Sec-Fetch-Site: same-site":  {"Sec-Fetch-Site", "same-site", "Origin", "http://evil.intents.example"},
		"another origin":             {"Origin", "http://evil.example"},
		"another scheme":             {"Origin", "https://intents.example"},
		"another port":               {"Origin", "http://intents.example:8080"},
		"an opaque origin":           {"Origin", "null"},
	} {
		for _, path := range []string{
			"/auth/sign-up/email", "/auth/sign-in/email", "/auth/sign-out",
			"/auth/revoke-session", "/auth/revoke-other-sessions", "/auth/revoke-sessions", "/auth/delete-user",
			"/auth/api-key/create", "/auth/api-key/update", "/auth/api-key/rotate", "/auth/api-key/delete",
		} {
			webtest.Same(t, name+" "+path, denied, s.Call(t, "POST", path, `{"name":"key"}`, append(ann, header...)...))
		}
		if got := s.Call(t, "GET", "/auth/get-session", "", append(ann, header...)...); got.Body == nil {
			t.Errorf("%s: a read, which changes nothing, is refused: %+v", name, got)
		}
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM api_keys`); n != 0 {
		t.Errorf("%d keys were made", n)
	}
	for name, header := range map[string][]string{
		"of this site":            {"Sec-Fetch-Site", "same-origin", "Origin", "http://intents.example"},
		"typed by a person":       {"Sec-Fetch-Site", "none"},
		"of an old browser":       {"Origin", "http://intents.example"},
		"of no browser":           {},
		"of this site, forwarded": {"Sec-Fetch-Site", "cross-site", "Origin", "http://intents.example"},
	} {
		if got := s.Call(t, "POST", "/auth/api-key/create", `{"name":"key"}`, append(ann, header...)...); got.Status != 200 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
