package web_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/identity/passkeytest"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/wire"
)

// repeat is a request whose write is done, so that its answer only reads, with its status and code once they are known.
type repeat struct {
	method, path, body string
	header             []string
	status             int
	code               string
}

// sendVerification is the one repeat that is made where mail is sent.
const sendVerification = "/auth/send-verification-email"

const secondRegistration = "a passkey of another registration"

// confirming are services on one database, of which one sends mail.
type confirming struct{ silent, mailing *webtest.Service }

func startConfirming(t *testing.T, store *rooms.Rooms) confirming {
	t.Helper()
	configure := func(c *webtest.Settings) { c.Pages = true }
	return confirming{webtest.StartOn(t, store, webtest.WithWebhooks(t), webtest.WithPasskeys, configure), webtest.StartOn(t, store, webtest.WithMail, webtest.WithPasskeys, configure)}
}

func (c confirming) call(t *testing.T, r repeat) webtest.Answer {
	t.Helper()
	s := c.silent
	if r.path == sendVerification {
		s = c.mailing
	}
	return s.Call(t, r.method, r.path, r.body, r.header...)
}

// repeats makes a write of each kind and returns the requests that repeat them. The one that registers a passkey again uses up its challenge, so
// register makes another.
func repeats(t *testing.T, c confirming) (all map[string]repeat, register func() repeat) {
	t.Helper()
	s := c.silent
	_, key := s.NewOwner(t)
	once := slices.Concat(key, []string{"Idempotency-Key", "order-1"})
	_, sent, _ := s.CreateTransfer(t, webtest.TransferBody, key...)
	_, cancelled, _ := s.CreateTransfer(t, webtest.TransferBody, key...)
	_, confirmed, _ := s.CreateTransfer(t, webtest.TransferBody, key...)
	hook, gone := "/v2/webhooks/"+s.CreateWebhook(t, key), "/v2/webhooks/"+s.CreateWebhook(t, key)
	ann := s.SignUp(t, "ann@example.com")
	s.SignUp(t, "bob@example.com")
	bob, err := s.Store.Identities.AccountByEmail(t.Context(), "bob@example.com")
	if err != nil {
		t.Fatal(err)
	}
	eve := s.SignUp(t, "eve@example.com")
	shop, members := s.ShareWith(t, eve, map[string]string{"dan@example.com": "viewer", "fay@example.com": "developer"})
	link := "/auth/verify-email?token=" + s.InsertLink(t, "fay@example.com", identity.Link{Purpose: account.VerifyEmail})
	invite := func(email string) string {
		return `{"organizationId":"` + shop + `","email":"` + email + `","role":"viewer"}`
	}
	browser, device := s.Browse(t, ann...), passkeytest.NewEd25519(t, webtest.PasskeySite, webtest.PasskeyHost)
	registered := webtest.PasskeyRegistration(device.Register(t, browser.Options("generate-register-options")), "laptop")
	pgtest.Exec(t, s.Store, `INSERT INTO identities (issuer, subject, account_id, created_at)
		SELECT 'eip155', $1, id, now() FROM accounts WHERE email = 'ann@example.com'`, strings.ToLower(webtest.Alice))
	token, minute := account.NewLinkToken(), time.Now().UTC().Truncate(time.Minute)
	pgtest.Must(t, s.Store.Identities.InsertResetToken(t.Context(), bob, account.HashToken(token), time.Now().Add(time.Hour), nil))
	all = map[string]repeat{
		"an intent":              {"POST", "/v2/transfers", webtest.TransferBody, once, 201, ""},
		"a reported hash":        {"POST", sent + "/transaction", webtest.ReportBody, key, 200, ""},
		"a cancelled intent":     {"POST", cancelled + "/cancel", "", key, 200, ""},
		"a webhook":              {"POST", "/v2/webhooks", webtest.HookBody, once, 201, ""},
		"a changed webhook":      {"PATCH", hook, `{"enabled":false}`, key, 200, ""},
		"a deleted webhook":      {"DELETE", gone, "", key, 404, "NOT_FOUND"},
		"a used token":           {"POST", "/auth/reset-password", `{"token":"` + token + `","newPassword":"` + webtest.NewPassword + `"}`, nil, 400, "INVALID_TOKEN"},
		"a used link":            {"GET", link, "", nil, 401, "INVALID_TOKEN"},
		"a removed member":       {"POST", "/auth/organization/remove-member", `{"organizationId":"` + shop + `","memberIdOrEmail":"dan@example.com"}`, eve, 400, "MEMBER_NOT_FOUND"},
		"a member who left":      {"POST", "/auth/organization/leave", `{"organizationId":"` + shop + `"}`, members["developer"], 403, "USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION"},
		"a usage report":         {"POST", "/internal/usage", webtest.UsageReport(uuid.NewString(), webtest.UsageRow(uuid.NewString(), minute, 1, 0, 0, minute.Format(time.RFC3339))), nil, 204, ""},
		"a session that ended":   {"POST", "/auth/revoke-other-sessions", `{}`, ann, 200, ""},
		"a key that was renamed": {"POST", "/auth/api-key/update", `{"keyId":"` + s.CreateKey(t, `{"name":"ci"}`, ann).ID + `","name":"Books"}`, ann, 200, ""},
		"a sign-up":              {"POST", "/auth/sign-up/email", `{"name":"Gus","email":"gus@example.com","password":"` + webtest.Password + `"}`, nil, 422, "USER_ALREADY_EXISTS"},
		"an unlinked wallet":     {"POST", "/auth/unlink-account", `{"providerId":"siwe"}`, ann, 400, "ACCOUNT_NOT_FOUND"},
		"an invitation":          {"POST", "/auth/organization/invite-member", invite("guest@example.com"), eve, 400, "USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION"},
		"an accepted invitation": {"POST", "/auth/organization/invite-member", invite("bob@example.com"), eve, 400, "USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION"},
		"a passkey":              {"POST", webtest.PasskeyPath + "verify-registration", registered, browser.Header(), 400, "CHALLENGE_NOT_FOUND"},
	}
	for name, r := range all {
		if got := c.call(t, r); got.Status >= 400 {
			t.Fatalf("%s: %+v", name, got)
		}
	}
	pgtest.Exec(t, s.Store, `INSERT INTO members (account_id, person_id, role, created_at)
		SELECT $1, id, 'viewer', now() FROM accounts WHERE email = 'bob@example.com'`, shop)
	pgtest.Exec(t, s.Store, `DELETE FROM invitations WHERE email = 'bob@example.com'`)
	all["an answered invitation"] = repeat{"POST", "/auth/organization/accept-invitation", `{"invitationId":"` + account.NewLinkToken() + `"}`, ann, 400, "INVITATION_NOT_FOUND"}
	all["a verified address"] = repeat{"POST", sendVerification, `{"email":"fay@example.com"}`, members["developer"], 400, "EMAIL_ALREADY_VERIFIED"}
	all["a used link of a program"] = repeat{"GET", link + "&callbackURL=/console", "", nil, 303, ""}
	pgtest.Exec(t, s.Store, `UPDATE transfers SET status = 'submitted', hash = '0x1' WHERE id = $1`, strings.TrimPrefix(confirmed, "/v2/transfers/"))
	all["an intent that is sent"] = repeat{"POST", confirmed + "/cancel", "", key, 409, "STATUS_CONFLICT"}
	register = func() repeat {
		again := s.Browse(t, ann...)
		body := webtest.PasskeyRegistration(device.Register(t, again.Options("generate-register-options")), "phone")
		return repeat{"POST", webtest.PasskeyPath + "verify-registration", body, again.Header(), 400, "PREVIOUSLY_REGISTERED"}
	}
	all[secondRegistration] = register()
	return all, register
}

// tokenIn is the token in the body of a request to set a password.
func tokenIn(body string) string {
	var request struct{ Token string }
	_ = json.Unmarshal([]byte(body), &request)
	return request.Token
}

// callAll sends requests at the same time and returns the status of each, with the code of an error.
func callAll(t *testing.T, c confirming, all map[string]repeat) map[string]string {
	t.Helper()
	var (
		mu    sync.Mutex
		wait  sync.WaitGroup
		shown = map[string]string{}
	)
	for name, r := range all {
		wait.Go(func() {
			got := c.call(t, r)
			body, _ := got.Body.(map[string]any)
			code, _ := body["code"].(string)
			mu.Lock()
			defer mu.Unlock()
			shown[name] = outcome(got.Status, code)
		})
	}
	wait.Wait()
	return shown
}

func outcome(status int, code string) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, code))
}

// recordedRepeats are the codes of the errors that a repeated write causes itself.
func recordedRepeats(t *testing.T) (codes []string) {
	t.Helper()
	text, err := os.ReadFile("apierror/testdata/errors.json")
	pgtest.Must(t, err)
	var all []struct {
		Body     wire.Error
		Repeated bool
	}
	pgtest.Must(t, json.Unmarshal(text, &all))
	for _, recorded := range all {
		if recorded.Repeated {
			codes = append(codes, string(recorded.Body.Code))
		}
	}
	return codes
}

// A client that repeats a write takes the answer for its outcome. While the rows that it comes from may be lost by a failover, because no
// standby has them, there is none; a list shows them all the same.
func TestConfirm_StandbyLost(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	admin := pgtest.Open(t, servers.Primary.URL)
	pgtest.Exec(t, admin, `ALTER ROLE CURRENT_USER SET synchronous_commit = on`) // a test's server has it off
	pgtest.Exec(t, admin, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	pgtest.Exec(t, admin, `SELECT pg_reload_conf()`)
	patient := startConfirming(t, admin)
	hurried := startConfirming(t, pgtest.OpenWith(t, servers.Primary.URL, postgres.Options{StatementTimeout: time.Second}))
	s := patient.silent
	all, register := repeats(t, patient)
	owner := all["an intent"].header[:6]
	list := s.Call(t, "GET", "/v2/transfers", "", owner...)

	if err := servers.Replica.Stop(); err != nil {
		t.Fatal(err)
	}
	doubt := repeat{"POST", "/v2/transfers", webtest.TransferBody, slices.Concat(owner, []string{"Idempotency-Key", "order-2"}), 201, ""}
	all["an intent in doubt"] = doubt
	for name, shown := range callAll(t, hurried, all) {
		if !strings.HasPrefix(shown, "503") && !strings.HasPrefix(shown, "429") { // the changes of one account take turns, and one that waits too long is refused
			t.Errorf("without a standby, %s: %s", name, shown)
		}
	}
	if got := hurried.call(t, doubt); got.Status != 503 {
		t.Errorf("the intent in doubt, repeated: %+v", got)
	}
	used := url.Values{"token": {tokenIn(all["a used token"].body)}, "newPassword": {webtest.NewPassword}}.Encode()
	for name, form := range map[string]repeat{
		"the end of a session": {path: "/console/account/revoke-others", header: all["a session that ended"].header},
		"a used token":         {path: "/console/reset-password", body: used, header: []string{"Content-Type", "application/x-www-form-urlencoded"}},
	} {
		page := hurried.silent.Send(t, "POST", form.path, form.body, form.header...)
		_ = page.Body.Close()
		if kind := page.Header.Get("Content-Type"); page.StatusCode != 503 || page.Header.Get("Location") != "" || kind != "text/html; charset=utf-8" {
			t.Errorf("the form of %s, sent again: %d, Location %q, %s", name, page.StatusCode, page.Header.Get("Location"), kind)
		}
	}
	shown, _ := s.Call(t, "GET", "/v2/transfers", "", owner...).Body.([]any)
	if before, _ := list.Body.([]any); len(shown) != len(before)+1 {
		t.Errorf("the list has %d intents, want %d and the one in doubt", len(shown), len(before))
	}

	pgtest.NewReplica(t, servers.Primary)
	all[secondRegistration] = register()
	settled, codes := map[string]string{}, map[string]bool{}
	for name, r := range all {
		settled[name], codes[r.code] = outcome(r.status, r.code), true
	}
	for _, code := range recordedRepeats(t) {
		if !codes[code] {
			t.Errorf("no write is repeated that %s answers", code)
		}
	}
	if diff := cmp.Diff(settled, callAll(t, patient, all)); diff != "" {
		t.Errorf("with a standby (-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transfers WHERE account_id = $1`, uuid.MustParse(owner[1])); n != len(shown) {
		t.Errorf("%d intents, want %d", n, len(shown))
	}
}
