package auth_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity/passkeytest"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// passkeyID is the id of the one passkey.
func passkeyID(t *testing.T, s *webtest.Service) string {
	t.Helper()
	return pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM passkeys ORDER BY id LIMIT 1`).String()
}

func TestPasskeys_Options(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithPasskeys)
	ann := s.Browse(t, s.SignUp(t, "ann@example.com")...)
	device := passkeytest.NewEd25519(t, webtest.PasskeySite, webtest.PasskeyHost)
	ann.AddPasskey(device)
	options := func(path string, header ...string) webtest.Answer {
		got := s.Call(t, "GET", webtest.PasskeyPath+path, "", header...)
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
		"extensions":{"credProps":true},"hints":[]}`, secure...), options("generate-register-options?name=desk&authenticatorAttachment=platform", ann.Header()...))
	webtest.Same(t, "sign-in", webtest.Want(t, 200, `{"rpId":"intents.example","challenge":"<challenge>","timeout":60000,"userVerification":"required"}`, secure...),
		options("generate-authenticate-options"))
	webtest.Same(t, "confirmation", webtest.Want(t, 200, `{"rpId":"intents.example","challenge":"<challenge>","allowCredentials":[`+known+`],"timeout":60000,"userVerification":"required"}`, secure...),
		options("generate-authenticate-options", ann.Header()...))
	transport := secure[2:]
	webtest.Same(t, "an attachment", invalidOverTLS(t, transport, "/authenticatorAttachment", "must be platform or cross-platform"),
		options("generate-register-options?authenticatorAttachment=usb", ann.Header()...))
	webtest.Same(t, "a parameter", invalidOverTLS(t, transport, "context", "is not a known parameter"), options("generate-register-options?context=x", ann.Header()...))
	webtest.Same(t, "nobody", webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first.", transport...), options("generate-register-options"))
}

// invalidOverTLS is invalid with headers.
func invalidOverTLS(t *testing.T, header []string, issues ...string) webtest.Answer {
	t.Helper()
	a := webtest.Invalid(t, issues...)
	a.Header[header[0]] = header[1]
	return a
}

func credentialID(t *testing.T, s *webtest.Service) string {
	t.Helper()
	return pgtest.LookUp[string](t, s.Store, `SELECT translate(rtrim(encode(credential_id, 'base64'), '='), '+/', '-_') FROM passkeys`)
}

func TestPasskeys_Refusals(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithPasskeys)
	transport := []string{"Strict-Transport-Security", "max-age=31536000"}
	ann, bob := s.Browse(t, s.SignUp(t, "ann@example.com")...), s.Browse(t, s.SignUp(t, "bob@example.com")...)
	device := passkeytest.NewP256(t, webtest.PasskeySite, webtest.PasskeyHost)
	register := func(c *webtest.Browser, response []byte) webtest.Answer {
		t.Helper()
		return s.Call(t, "POST", webtest.PasskeyPath+"verify-registration", webtest.PasskeyRegistration(response, "laptop"), c.Header()...)
	}
	const again = "ask for options again."
	noChallenge := webtest.Refused(t, 400, "CHALLENGE_NOT_FOUND", "The challenge was used, has expired or is another browser's; "+again, transport...)
	response := device.Register(t, ann.Options("generate-register-options"))
	webtest.Same(t, "no challenge", noChallenge, register(bob, response))
	bob.Cookie = ann.Cookie
	webtest.Same(t, "another's challenge", webtest.Refused(t, 401, "YOU_ARE_NOT_ALLOWED_TO_REGISTER_THIS_PASSKEY", "Another person began this registration; "+again, transport...), register(bob, response))
	webtest.Same(t, "a challenge that is gone", noChallenge, register(ann, response))
	notVerified := webtest.Refused(t, 400, "FAILED_TO_VERIFY_REGISTRATION",
		"The response does not register a passkey for the challenge at this site, with user verification and without attestation; "+again, transport...)
	device.Unverified = true
	webtest.Same(t, "no user verification", notVerified, register(ann, device.Register(t, ann.Options("generate-register-options"))))
	device.Unverified = false
	ann.Options("generate-register-options")
	webtest.Same(t, "no response", notVerified, register(ann, []byte(`{}`)))
	webtest.Same(t, "no object", invalidOverTLS(t, transport, "/response", "must be an object, the response of the authenticator as JSON"), register(ann, []byte(`"x"`)))
	large := webtest.TooLarge(t)
	large.Header[transport[0]] = transport[1]
	device.Format, device.Statement = "packed", map[string]any{"x5c": strings.Repeat("x", 64<<10)}
	webtest.Same(t, "a large attestation", large, register(ann, device.Register(t, ann.Options("generate-register-options"))))
	device.Format, device.Statement = "", nil
	ann.AddPasskey(device)
	webtest.Same(t, "the same passkey", webtest.Refused(t, 400, "PREVIOUSLY_REGISTERED", "The passkey is registered already; use it, or create another one.", transport...),
		register(ann, device.Register(t, ann.Options("generate-register-options"))))
	for range 9 {
		ann.AddPasskey(passkeytest.NewEd25519(t, webtest.PasskeySite, webtest.PasskeyHost))
	}
	webtest.Same(t, "the eleventh", webtest.Refused(t, 400, "TOO_MANY_PASSKEYS", "You have 10 passkeys, and more are not possible; remove one first.", transport...),
		register(ann, passkeytest.NewP256(t, webtest.PasskeySite, webtest.PasskeyHost).Register(t, ann.Options("generate-register-options"))))

	authenticate := func(c *webtest.Browser, a *passkeytest.Authenticator) webtest.Answer {
		t.Helper()
		options := c.Options("generate-authenticate-options")
		return s.Call(t, "POST", webtest.PasskeyPath+"verify-authentication", webtest.PasskeyAuthentication(a.Authenticate(t, options)), c.Header()...)
	}
	stranger := passkeytest.NewP256(t, webtest.PasskeySite, webtest.PasskeyHost)
	stranger.Handle = device.Handle
	webtest.Same(t, "an unknown passkey", webtest.Refused(t, 401, "PASSKEY_NOT_FOUND", "Nobody signs in with this passkey here; it may have been removed.", transport...),
		authenticate(s.Browse(t), stranger))
	failed := webtest.Refused(t, 401, "AUTHENTICATION_FAILED",
		"The response does not prove the passkey for the challenge at this site, with user verification; "+again, transport...)
	device.Unverified = true
	webtest.Same(t, "a sign-in without user verification", failed, authenticate(s.Browse(t), device))
	device.Unverified = false
	webtest.Same(t, "another person's passkey", failed, authenticate(bob, device))
	webtest.Same(t, "a sign-in without a challenge", noChallenge,
		s.Call(t, "POST", webtest.PasskeyPath+"verify-authentication", webtest.PasskeyAuthentication(device.Authenticate(t, []byte(`{"challenge":"x"}`)))))

	noPasskey := webtest.Refused(t, 404, "PASSKEY_NOT_FOUND", "You have no such passkey; see /auth/passkey/list-user-passkeys.", transport...)
	for _, id := range []string{passkeyID(t, s), "nobody"} {
		webtest.Same(t, "rename another's", noPasskey, s.Call(t, "POST", webtest.PasskeyPath+"update-passkey", `{"id":"`+id+`","name":"mine"}`, bob.Header()...))
		webtest.Same(t, "remove another's", noPasskey, s.Call(t, "POST", webtest.PasskeyPath+"delete-passkey", `{"id":"`+id+`"}`, bob.Header()...))
	}
	pgtest.Exec(t, s.Store, `UPDATE sessions SET confirmed_at = now() - interval '11 minutes'`)
	stale := webtest.Refused(t, 403, "SESSION_NOT_FRESH",
		"You have a passkey, and this session was not confirmed with it within ten minutes. Confirm it with /auth/passkey/verify-authentication, then repeat this.", transport...)
	webtest.Same(t, "an old session adds", stale, s.Call(t, "GET", webtest.PasskeyPath+"generate-register-options", "", ann.Header()...))
	webtest.Same(t, "an old session removes", stale, s.Call(t, "POST", webtest.PasskeyPath+"delete-passkey", `{"id":"`+passkeyID(t, s)+`"}`, ann.Header()...))
	webtest.Same(t, "an old session makes a live key", stale, s.Call(t, "POST", "/auth/api-key/create", `{"name":"ci","environment":"live","password":"`+webtest.Password+`"}`, ann.Header()...))
	if got := authenticate(ann, device); got.Status != 200 {
		t.Errorf("a confirmation: %+v", got)
	}
	if got := s.Call(t, "POST", "/auth/api-key/create", `{"name":"ci","environment":"live"}`, ann.Header()...); got.Status != 200 {
		t.Errorf("a live key after the confirmation: %+v", got)
	}
	pgtest.Exec(t, s.Store, `UPDATE accounts SET disabled_at = now() WHERE email = 'ann@example.com'`)
	webtest.Same(t, "a disabled person", webtest.Refused(t, 403, "ACCOUNT_DISABLED", "The account is disabled; ask the operator.", transport...), authenticate(s.Browse(t), device))
}

func TestPasskeys_LastWayIn(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithPasskeys)
	ann := s.Browse(t, s.SignUp(t, "ann@example.com")...)
	ann.AddPasskey(passkeytest.NewP256(t, webtest.PasskeySite, webtest.PasskeyHost))
	transport := []string{"Strict-Transport-Security", "max-age=31536000"}
	webtest.Same(t, "the password", webtest.Want(t, 200, `{"status":true}`, transport...), s.Call(t, "POST", "/auth/unlink-account", `{"providerId":"credential"}`, ann.Header()...))
	webtest.Same(t, "the last way in", webtest.Refused(t, 400, "FAILED_TO_UNLINK_LAST_ACCOUNT", "Nobody could sign in to the account any more; link another way or set a password first.", transport...),
		s.Call(t, "POST", webtest.PasskeyPath+"delete-passkey", `{"id":"`+passkeyID(t, s)+`"}`, ann.Header()...))
}

func TestPasskeys_SecondFactor(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithPasskeys, func(c *webtest.Settings) { c.Identity.SecondFactor = true })
	ann := s.Browse(t, s.SignUp(t, "ann@example.com")...)
	needed := webtest.Refused(t, 403, "SECOND_FACTOR_REQUIRED", "The operator requires a passkey for this. Add one with /auth/passkey/generate-register-options; an owner of live keys keeps one.",
		"Strict-Transport-Security", "max-age=31536000")
	liveKey := `{"name":"ci","environment":"live","password":"` + webtest.Password + `"}`
	webtest.Same(t, "a live key", needed, s.Call(t, "POST", "/auth/api-key/create", liveKey, ann.Header()...))
	ann.AddPasskey(passkeytest.NewP256(t, webtest.PasskeySite, webtest.PasskeyHost))
	if got := s.Call(t, "POST", "/auth/api-key/create", liveKey, ann.Header()...); got.Status != 200 {
		t.Errorf("a live key with a passkey: %+v", got)
	}
	webtest.Same(t, "the last passkey", needed, s.Call(t, "POST", webtest.PasskeyPath+"delete-passkey", `{"id":"`+passkeyID(t, s)+`"}`, ann.Header()...))
}

func TestPasskeys_NotConfigured(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
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
		webtest.Same(t, path, off, s.Call(t, method, webtest.PasskeyPath+path, body, ann...))
	}
}

// Nothing of better-auth's plugin for one-time codes is there.
func TestPasskeys_NoTwoFactor(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	for _, path := range []string{"enable", "disable", "verify-totp", "send-otp", "verify-otp", "verify-backup-code", "get-totp-uri", "generate-backup-codes"} {
		webtest.Same(t, path, webtest.Refused(t, 404, "NOT_FOUND", "There is nothing at this path."), s.Call(t, "POST", "/auth/two-factor/"+path, `{}`))
	}
}
