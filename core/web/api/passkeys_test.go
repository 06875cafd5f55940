package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity/passkeytest"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

const (
	passkeySite = "https://intents.example"
	passkeyHost = "intents.example"
	onPasskey   = "/auth/passkey/"
)

// withPasskeys has the service at a URL where browsers know passkeys.
func withPasskeys(c *webtest.Settings) {
	c.API.PublicURL, c.Identity.PublicURL = passkeySite, passkeySite
}

// ceremony is a browser with the cookies of its session and of its challenge.
type ceremony struct {
	t       *testing.T
	s       *service
	session string
	cookie  string
}

// browse is the browser of a session, a header as signUp returns it.
func (s *service) browse(t *testing.T, session ...string) *ceremony {
	t.Helper()
	c := &ceremony{t: t, s: s}
	if len(session) > 0 {
		c.session = session[1]
	}
	return c
}

func (c *ceremony) header() []string {
	cookies := strings.Trim(c.session+"; "+c.cookie, "; ")
	if cookies == "" {
		return nil
	}
	return []string{"Cookie", cookies}
}

// options asks for options, and keeps the cookie of their challenge.
func (c *ceremony) options(path string) []byte {
	c.t.Helper()
	response := c.s.Send(c.t, "GET", onPasskey+path, "", c.header()...)
	text := webtest.ReadAll(c.t, response)
	if response.StatusCode != 200 {
		c.t.Fatalf("%s: %s", path, text)
	}
	c.cookie, _, _ = strings.Cut(response.Header.Get("Set-Cookie"), ";")
	return []byte(text)
}

func registration(response []byte, name string) string {
	return fmt.Sprintf(`{"response":%s,"name":%q}`, response, name)
}

func authentication(response []byte) string { return fmt.Sprintf(`{"response":%s}`, response) }

// adds registers the passkey of an authenticator.
func (c *ceremony) adds(a *passkeytest.Authenticator) {
	c.t.Helper()
	response := a.Register(c.t, c.options("generate-register-options"))
	if got := c.s.Call(c.t, "POST", onPasskey+"verify-registration", registration(response, "laptop"), c.header()...); got.Status != 200 {
		c.t.Fatalf("verify-registration: %+v", got)
	}
}

// passkeyID is the id of the one passkey.
func passkeyID(t *testing.T, s *service) string {
	t.Helper()
	return pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM passkeys ORDER BY id LIMIT 1`).String()
}

func TestPasskeys_Options(t *testing.T) {
	t.Parallel()
	s := start(t, withPasskeys)
	ann := s.browse(t, signUp(t, s, "ann@example.com")...)
	device := passkeytest.NewEd25519(t, passkeySite, passkeyHost)
	ann.adds(device)
	options := func(path string, header ...string) webtest.Answer {
		got := s.Call(t, "GET", onPasskey+path, "", header...)
		if body, ok := got.Body.(map[string]any); ok && body["challenge"] != nil {
			body["challenge"] = "<challenge>"
			if user, ok := body["user"].(map[string]any); ok {
				user["id"] = "<handle>"
			}
		}
		return got
	}
	const cookie = "__Host-intents.passkey=<>; Path=/; Max-Age=300; HttpOnly; Secure; SameSite=Lax"
	secure := []string{"Set-Cookie", cookie, "Strict-Transport-Security", "max-age=31536000"}
	known := fmt.Sprintf(`{"id":%q,"transports":["internal","hybrid"],"type":"public-key"}`, credentialID(t, s))
	webtest.Same(t, "registration", webtest.Want(t, 200, `{"challenge":"<challenge>","rp":{"name":"Transfer Intents","id":"intents.example"},
		"user":{"id":"<handle>","name":"desk","displayName":"ann@example.com"},
		"pubKeyCredParams":[{"type":"public-key","alg":-8},{"type":"public-key","alg":-7},{"type":"public-key","alg":-257}],"timeout":60000,"attestation":"none",
		"excludeCredentials":[`+known+`],"authenticatorSelection":{"authenticatorAttachment":"platform","residentKey":"required","requireResidentKey":true,"userVerification":"required"},
		"extensions":{"credProps":true},"hints":[]}`, secure...), options("generate-register-options?name=desk&authenticatorAttachment=platform", ann.header()...))
	webtest.Same(t, "sign-in", webtest.Want(t, 200, `{"rpId":"intents.example","challenge":"<challenge>","timeout":60000,"userVerification":"required"}`, secure...),
		options("generate-authenticate-options"))
	webtest.Same(t, "confirmation", webtest.Want(t, 200, `{"rpId":"intents.example","challenge":"<challenge>","allowCredentials":[`+known+`],"timeout":60000,"userVerification":"required"}`, secure...),
		options("generate-authenticate-options", ann.header()...))
	transport := secure[2:]
	webtest.Same(t, "an attachment", invalidOverTLS(t, transport, "/authenticatorAttachment", "must be platform or cross-platform"),
		options("generate-register-options?authenticatorAttachment=usb", ann.header()...))
	webtest.Same(t, "a parameter", invalidOverTLS(t, transport, "context", "is not a known parameter"), options("generate-register-options?context=x", ann.header()...))
	webtest.Same(t, "nobody", webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first.", transport...), options("generate-register-options"))
}

// invalidOverTLS is invalid with headers.
func invalidOverTLS(t *testing.T, header []string, issues ...string) webtest.Answer {
	t.Helper()
	a := webtest.Invalid(t, issues...)
	a.Header[header[0]] = header[1]
	return a
}

func credentialID(t *testing.T, s *service) string {
	t.Helper()
	return pgtest.LookUp[string](t, s.Store, `SELECT translate(rtrim(encode(credential_id, 'base64'), '='), '+/', '-_') FROM passkeys`)
}

func TestPasskeys_Refusals(t *testing.T) {
	t.Parallel()
	s := start(t, withPasskeys)
	transport := []string{"Strict-Transport-Security", "max-age=31536000"}
	ann, bob := s.browse(t, signUp(t, s, "ann@example.com")...), s.browse(t, signUp(t, s, "bob@example.com")...)
	device := passkeytest.NewP256(t, passkeySite, passkeyHost)
	register := func(c *ceremony, response []byte) webtest.Answer {
		t.Helper()
		return s.Call(t, "POST", onPasskey+"verify-registration", registration(response, "laptop"), c.header()...)
	}
	const again = "ask for options again."
	noChallenge := webtest.Refused(t, 400, "CHALLENGE_NOT_FOUND", "The challenge was used, has expired or is another browser's; "+again, transport...)
	response := device.Register(t, ann.options("generate-register-options"))
	webtest.Same(t, "no challenge", noChallenge, register(bob, response))
	bob.cookie = ann.cookie
	webtest.Same(t, "another's challenge", webtest.Refused(t, 401, "YOU_ARE_NOT_ALLOWED_TO_REGISTER_THIS_PASSKEY", "Another person began this registration; "+again, transport...), register(bob, response))
	webtest.Same(t, "a challenge that is gone", noChallenge, register(ann, response))
	notVerified := webtest.Refused(t, 400, "FAILED_TO_VERIFY_REGISTRATION",
		"The response does not register a passkey for the challenge at this site, with user verification and without attestation; "+again, transport...)
	device.Unverified = true
	webtest.Same(t, "no user verification", notVerified, register(ann, device.Register(t, ann.options("generate-register-options"))))
	device.Unverified = false
	ann.options("generate-register-options")
	webtest.Same(t, "no response", notVerified, register(ann, []byte(`{}`)))
	webtest.Same(t, "no object", invalidOverTLS(t, transport, "/response", "must be an object, the response of the authenticator as JSON"), register(ann, []byte(`"x"`)))
	large := webtest.TooLarge(t)
	large.Header[transport[0]] = transport[1]
	device.Format, device.Statement = "packed", map[string]any{"x5c": strings.Repeat("x", 64<<10)}
	webtest.Same(t, "a large attestation", large, register(ann, device.Register(t, ann.options("generate-register-options"))))
	device.Format, device.Statement = "", nil
	ann.adds(device)
	webtest.Same(t, "the same passkey", webtest.Refused(t, 400, "PREVIOUSLY_REGISTERED", "The passkey is registered already; use it, or create another one.", transport...),
		register(ann, device.Register(t, ann.options("generate-register-options"))))
	for range 9 {
		ann.adds(passkeytest.NewEd25519(t, passkeySite, passkeyHost))
	}
	webtest.Same(t, "the eleventh", webtest.Refused(t, 400, "TOO_MANY_PASSKEYS", "You have 10 passkeys, and more are not possible; remove one first.", transport...),
		register(ann, passkeytest.NewP256(t, passkeySite, passkeyHost).Register(t, ann.options("generate-register-options"))))

	authenticate := func(c *ceremony, a *passkeytest.Authenticator) webtest.Answer {
		t.Helper()
		options := c.options("generate-authenticate-options")
		return s.Call(t, "POST", onPasskey+"verify-authentication", authentication(a.Authenticate(t, options)), c.header()...)
	}
	stranger := passkeytest.NewP256(t, passkeySite, passkeyHost)
	stranger.Handle = device.Handle
	webtest.Same(t, "an unknown passkey", webtest.Refused(t, 401, "PASSKEY_NOT_FOUND", "Nobody signs in with this passkey here; it may have been removed.", transport...),
		authenticate(s.browse(t), stranger))
	failed := webtest.Refused(t, 401, "AUTHENTICATION_FAILED",
		"The response does not prove the passkey for the challenge at this site, with user verification; "+again, transport...)
	device.Unverified = true
	webtest.Same(t, "a sign-in without user verification", failed, authenticate(s.browse(t), device))
	device.Unverified = false
	webtest.Same(t, "another person's passkey", failed, authenticate(bob, device))
	webtest.Same(t, "a sign-in without a challenge", noChallenge,
		s.Call(t, "POST", onPasskey+"verify-authentication", authentication(device.Authenticate(t, []byte(`{"challenge":"x"}`)))))

	noPasskey := webtest.Refused(t, 404, "PASSKEY_NOT_FOUND", "You have no such passkey; see /auth/passkey/list-user-passkeys.", transport...)
	for _, id := range []string{passkeyID(t, s), "nobody"} {
		webtest.Same(t, "rename another's", noPasskey, s.Call(t, "POST", onPasskey+"update-passkey", `{"id":"`+id+`","name":"mine"}`, bob.header()...))
		webtest.Same(t, "remove another's", noPasskey, s.Call(t, "POST", onPasskey+"delete-passkey", `{"id":"`+id+`"}`, bob.header()...))
	}
	pgtest.Exec(t, s.Store, `UPDATE sessions SET confirmed_at = now() - interval '11 minutes'`)
	stale := webtest.Refused(t, 403, "SESSION_NOT_FRESH",
		"You have a passkey, and this session was not confirmed with it within ten minutes. Confirm it with /auth/passkey/verify-authentication, then repeat this.", transport...)
	webtest.Same(t, "an old session adds", stale, s.Call(t, "GET", onPasskey+"generate-register-options", "", ann.header()...))
	webtest.Same(t, "an old session removes", stale, s.Call(t, "POST", onPasskey+"delete-passkey", `{"id":"`+passkeyID(t, s)+`"}`, ann.header()...))
	webtest.Same(t, "an old session makes a live key", stale, s.Call(t, "POST", "/auth/api-key/create", `{"name":"ci","environment":"live","password":"`+webtest.Password+`"}`, ann.header()...))
	if got := authenticate(ann, device); got.Status != 200 {
		t.Errorf("a confirmation: %+v", got)
	}
	if got := s.Call(t, "POST", "/auth/api-key/create", `{"name":"ci","environment":"live"}`, ann.header()...); got.Status != 200 {
		t.Errorf("a live key after the confirmation: %+v", got)
	}
	pgtest.Exec(t, s.Store, `UPDATE accounts SET disabled_at = now() WHERE email = 'ann@example.com'`)
	webtest.Same(t, "a disabled person", webtest.Refused(t, 403, "ACCOUNT_DISABLED", "The account is disabled; ask the operator.", transport...), authenticate(s.browse(t), device))
}

func TestPasskeys_LastWayIn(t *testing.T) {
	t.Parallel()
	s := start(t, withPasskeys)
	ann := s.browse(t, signUp(t, s, "ann@example.com")...)
	ann.adds(passkeytest.NewP256(t, passkeySite, passkeyHost))
	transport := []string{"Strict-Transport-Security", "max-age=31536000"}
	webtest.Same(t, "the password", webtest.Want(t, 200, `{"status":true}`, transport...), s.Call(t, "POST", "/auth/unlink-account", `{"providerId":"credential"}`, ann.header()...))
	webtest.Same(t, "the last way in", webtest.Refused(t, 400, "FAILED_TO_UNLINK_LAST_ACCOUNT", "Nobody could sign in to the account any more; link another way or set a password first.", transport...),
		s.Call(t, "POST", onPasskey+"delete-passkey", `{"id":"`+passkeyID(t, s)+`"}`, ann.header()...))
}

func TestPasskeys_SecondFactor(t *testing.T) {
	t.Parallel()
	s := start(t, withPasskeys, func(c *webtest.Settings) { c.Identity.SecondFactor = true })
	ann := s.browse(t, signUp(t, s, "ann@example.com")...)
	needed := webtest.Refused(t, 403, "SECOND_FACTOR_REQUIRED", "The operator requires a passkey for this. Add one with /auth/passkey/generate-register-options; an owner of live keys keeps one.",
		"Strict-Transport-Security", "max-age=31536000")
	liveKey := `{"name":"ci","environment":"live","password":"` + webtest.Password + `"}`
	webtest.Same(t, "a live key", needed, s.Call(t, "POST", "/auth/api-key/create", liveKey, ann.header()...))
	ann.adds(passkeytest.NewP256(t, passkeySite, passkeyHost))
	if got := s.Call(t, "POST", "/auth/api-key/create", liveKey, ann.header()...); got.Status != 200 {
		t.Errorf("a live key with a passkey: %+v", got)
	}
	webtest.Same(t, "the last passkey", needed, s.Call(t, "POST", onPasskey+"delete-passkey", `{"id":"`+passkeyID(t, s)+`"}`, ann.header()...))
}

func TestPasskeys_NotConfigured(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	off := webtest.Refused(t, 400, "PASSKEYS_NOT_CONFIGURED", "Browsers know no passkeys at the address of this service; the operator must give it a domain and TLS in CORE_PUBLIC_URL.")
	for path, body := range map[string]string{
		"generate-register-options": "", "verify-registration": `{"response":{}}`, "generate-authenticate-options": "",
		"verify-authentication": `{"response":{}}`, "list-user-passkeys": "", "update-passkey": `{"id":"` + uuid.NewString() + `","name":"x"}`,
		"delete-passkey": `{"id":"` + uuid.NewString() + `"}`,
	} {
		method := "POST"
		if body == "" {
			method = "GET"
		}
		webtest.Same(t, path, off, s.Call(t, method, onPasskey+path, body, ann...))
	}
}

// Nothing of better-auth's plugin for one-time codes is there.
func TestPasskeys_NoTwoFactor(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{"enable", "disable", "verify-totp", "send-otp", "verify-otp", "verify-backup-code", "get-totp-uri", "generate-backup-codes"} {
		webtest.Same(t, path, webtest.Refused(t, 404, "NOT_FOUND", "There is nothing at this path."), s.Call(t, "POST", "/auth/two-factor/"+path, `{}`))
	}
}
