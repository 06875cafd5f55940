package api_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/identity/identities"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
)

// repeat is a request whose write is done, so that its answer only reads, with its status once that is known.
type repeat struct {
	method, path, body string
	header             []string
	status             int
}

// repeats makes a write of each kind and returns the requests that repeat them.
func repeats(t *testing.T, s *service) map[string]repeat {
	t.Helper()
	_, key := newOwner(t, s)
	once := slices.Concat(key, []string{"Idempotency-Key", "order-1"})
	_, sent, _ := s.create(t, transferBody, key...)
	_, cancelled, _ := s.create(t, transferBody, key...)
	_, confirmed, _ := s.create(t, transferBody, key...)
	hook, gone := "/v2/webhooks/"+createWebhook(t, s, key), "/v2/webhooks/"+createWebhook(t, s, key)
	ann := signUp(t, s, "ann@example.com")
	signUp(t, s, "bob@example.com")
	bob, err := s.store.Identities.AccountByEmail(t.Context(), "bob@example.com")
	if err != nil {
		t.Fatal(err)
	}
	eve := signUp(t, s, "eve@example.com")
	shop, members := shareWith(t, s, eve, map[string]string{"dan@example.com": "viewer", "fay@example.com": "developer"})
	link := "/auth/verify-email?token=" + insertLink(t, s, "fay@example.com", identities.Link{Purpose: account.VerifyEmail})
	token, minute := account.NewLinkToken(), time.Now().UTC().Truncate(time.Minute)
	pgtest.Must(t, s.store.Identities.InsertResetToken(t.Context(), bob, account.HashToken(token), time.Now().Add(time.Hour), nil))
	all := map[string]repeat{
		"an intent":              {"POST", "/v2/transfers", transferBody, once, 201},
		"a reported hash":        {"POST", sent + "/transaction", reportOf(txHash("a")), key, 200},
		"a cancelled intent":     {"POST", cancelled + "/cancel", "", key, 200},
		"a webhook":              {"POST", "/v2/webhooks", hookBody, once, 201},
		"a changed webhook":      {"PATCH", hook, `{"enabled":false}`, key, 200},
		"a deleted webhook":      {"DELETE", gone, "", key, 404},
		"a used token":           {"POST", "/auth/reset-password", resetPassword(token), nil, 400},
		"a used link":            {"GET", link, "", nil, 401},
		"a removed member":       {"POST", "/auth/organization/remove-member", `{"organizationId":"` + shop + `","memberIdOrEmail":"dan@example.com"}`, eve, 400},
		"a member who left":      {"POST", "/auth/organization/leave", `{"organizationId":"` + shop + `"}`, members["developer"], 403},
		"a usage report":         {"POST", "/internal/usage", usageReport(uuid.NewString(), usageRow(uuid.NewString(), minute, 1, 0, 0, minute.Format(time.RFC3339))), nil, 204},
		"a session that ended":   {"POST", "/auth/revoke-other-sessions", `{}`, ann, 200},
		"a key that was renamed": {"POST", "/auth/api-key/update", `{"keyId":"` + createKey(t, s, `{"name":"ci"}`, ann).ID + `","name":"Books"}`, ann, 200},
	}
	for name, r := range all {
		if got := s.call(t, r.method, r.path, r.body, r.header...); got.Status >= 400 {
			t.Fatalf("%s: %+v", name, got)
		}
	}
	all["a used link of a program"] = repeat{"GET", link + "&callbackURL=/console", "", nil, 303}
	pgtest.Exec(t, s.store, `UPDATE transfers SET status = 'submitted', hash = '0x1' WHERE id = $1`, strings.TrimPrefix(confirmed, "/v2/transfers/"))
	all["an intent that is sent"] = repeat{"POST", confirmed + "/cancel", "", key, 409}
	return all
}

// tokenIn is the token in the body of a request to set a password.
func tokenIn(body string) string {
	var request struct{ Token string }
	_ = json.Unmarshal([]byte(body), &request)
	return request.Token
}

// callAll sends requests at the same time and returns their statuses.
func callAll(t *testing.T, s *service, all map[string]repeat) map[string]int {
	t.Helper()
	var (
		mu       sync.Mutex
		wait     sync.WaitGroup
		statuses = map[string]int{}
	)
	for name, r := range all {
		wait.Go(func() {
			got := s.call(t, r.method, r.path, r.body, r.header...)
			mu.Lock()
			defer mu.Unlock()
			statuses[name] = got.Status
		})
	}
	wait.Wait()
	return statuses
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
	s := startOn(t, admin, withWebhooks(t))
	hurried := startOn(t, pgtest.OpenWith(t, servers.Primary.URL, postgres.Options{StatementTimeout: time.Second}), withWebhooks(t), func(c *settings) { c.pages = true })
	all := repeats(t, s)
	owner := all["an intent"].header[:6]
	list := s.call(t, "GET", "/v2/transfers", "", owner...)

	if err := servers.Replica.Stop(); err != nil {
		t.Fatal(err)
	}
	doubt := repeat{"POST", "/v2/transfers", transferBody, slices.Concat(owner, []string{"Idempotency-Key", "order-2"}), 201}
	all["an intent in doubt"] = doubt
	for name, status := range callAll(t, hurried, all) {
		if status != 503 && status != 429 { // the changes of one account take turns, and one that waits too long is refused
			t.Errorf("without a standby, %s: %d", name, status)
		}
	}
	if got := hurried.call(t, doubt.method, doubt.path, doubt.body, doubt.header...); got.Status != 503 {
		t.Errorf("the intent in doubt, repeated: %+v", got)
	}
	used := url.Values{"token": {tokenIn(all["a used token"].body)}, "newPassword": {newPassword}}.Encode()
	for name, form := range map[string]repeat{
		"the end of a session": {path: "/console/account/revoke-others", header: all["a session that ended"].header},
		"a used token":         {path: "/console/reset-password", body: used, header: []string{"Content-Type", "application/x-www-form-urlencoded"}},
	} {
		page := hurried.send(t, "POST", form.path, form.body, form.header...)
		_ = page.Body.Close()
		if kind := page.Header.Get("Content-Type"); page.StatusCode != 503 || page.Header.Get("Location") != "" || kind != "text/html; charset=utf-8" {
			t.Errorf("the form of %s, sent again: %d, Location %q, %s", name, page.StatusCode, page.Header.Get("Location"), kind)
		}
	}
	shown, _ := s.call(t, "GET", "/v2/transfers", "", owner...).Body.([]any)
	if before, _ := list.Body.([]any); len(shown) != len(before)+1 {
		t.Errorf("the list has %d intents, want %d and the one in doubt", len(shown), len(before))
	}

	pgtest.NewReplica(t, servers.Primary)
	settled := map[string]int{}
	for name, r := range all {
		settled[name] = r.status
	}
	if diff := cmp.Diff(settled, callAll(t, s, all)); diff != "" {
		t.Errorf("with a standby (-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM transfers WHERE account_id = $1`, uuid.MustParse(owner[1])); n != len(shown) {
		t.Errorf("%d intents, want %d", n, len(shown))
	}
}
