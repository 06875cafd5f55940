package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
)

const hookJSON = `{"id":"<id>","url":"https://example.com/hooks","types":null,"description":null,"environment":"test","enabled":true,
	"disabledReason":null,"createdAt":"<time>","updatedAt":"<time>"}`

var noStore = []string{"Cache-Control", "no-store"}

func TestWebhooks_Lifecycle(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	webtest.Same(t, "no webhooks", webtest.Want(t, 200, `[]`, noStore...), s.Call(t, "GET", "/v2/webhooks", "", key...))
	id := s.CreateWebhook(t, key)
	path := "/v2/webhooks/" + id
	webtest.Same(t, "the webhook", webtest.Want(t, 200, hookJSON, noStore...), s.Call(t, "GET", path, "", key...))
	webtest.Same(t, "the list", webtest.Want(t, 200, "["+hookJSON+"]", noStore...), s.Call(t, "GET", "/v2/webhooks", "", key...))
	changed := strings.NewReplacer(`"types":null`, `"types":["transfer.*"]`, `"description":null`, `"description":"Books"`).Replace(hookJSON)
	webtest.Same(t, "types and description", webtest.Want(t, 200, changed, noStore...), s.Call(t, "PATCH", path, `{"types":["transfer.*"],"description":"Books"}`, key...))
	webtest.Same(t, "only the state", webtest.Want(t, 200, strings.NewReplacer(`"enabled":true`, `"enabled":false`, `"disabledReason":null`, `"disabledReason":"owner"`).Replace(changed), noStore...),
		s.Call(t, "PATCH", path, `{"enabled":false}`, key...))
	disabled := webtest.Refused(t, 409, "WEBHOOK_DISABLED", "The webhook is disabled; enable it first.")
	cursor := feed.FormatCursor(feed.Owner{AccountID: uuid.MustParse(key[1]), Environment: network.Test}, 0)
	eventID := feed.ID(uuid.New()).String()
	for _, action := range []string{"/test", "/replay", "/deliveries/" + eventID + "/retry"} {
		body := ""
		if action == "/replay" {
			body = fmt.Sprintf(`{"after":%q}`, cursor)
		}
		got := s.Call(t, "POST", path+action, body, key...)
		webtest.Same(t, action+" while disabled", disabled, got)
	}
	webtest.Same(t, "back again", webtest.Want(t, 200, hookJSON, noStore...), s.Call(t, "PATCH", path, `{"enabled":true,"types":null,"description":null}`, key...))
	webtest.Same(t, "replay", webtest.Want(t, 202, "", noStore...), s.Call(t, "POST", path+"/replay", fmt.Sprintf(`{"after":%q}`, cursor), key...))
	webtest.Same(t, "deliveries", webtest.Want(t, 200, `{"deliveries":[],"next":null}`, noStore...), s.Call(t, "GET", path+"/deliveries", "", key...))
	for range 3 {
		if got := s.Call(t, "POST", path+"/test", "", key...); got.Status != 202 {
			t.Errorf("test: %+v", got)
		}
	}
	for _, body := range []string{"", `{}`, `{"gracePeriod":0}`, `{"gracePeriod":604800}`} {
		if got := s.Call(t, "POST", path+"/rotate-secret", body, key...); got.Status != 200 {
			t.Errorf("rotate %s: %+v", body, got)
		}
	}
	webtest.Same(t, "delete", webtest.Want(t, 204, "", noStore...), s.Call(t, "DELETE", path, "", key...))
	if got := s.Call(t, "GET", path, "", key...); got.Status != 404 {
		t.Errorf("after the deletion: %+v", got)
	}
	// An hour may end meanwhile, so what was done is added up.
	actions := pgtest.LookUp[string](t, s.Store, `SELECT string_agg(action || ' ' || times, ', ' ORDER BY first) FROM (
		SELECT action, sum(1 + repeats) AS times, min(occurred_at) AS first FROM audit_log WHERE action LIKE 'webhook%' AND key_id = $1 GROUP BY action) AS done`, key[3])
	if actions != "webhook_created 1, webhook_updated 3, webhook_replayed 1, webhook_secret_rotated 4, webhook_deleted 1" {
		t.Errorf("the audit log has %s", actions)
	}
}

// A change that changes nothing is no entry of the audit log, and leaves updatedAt.
func TestUpdateWebhook_NothingChanged(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	path := "/v2/webhooks/" + s.CreateWebhook(t, key)
	pgtest.Exec(t, s.Store, `UPDATE webhooks SET updated_at = created_at - interval '1 h', types = '{transfer.*}', description = 'Books'`)
	before := pgtest.LookUp[string](t, s.Store, `SELECT row_to_json(webhooks)::text FROM webhooks`)
	for _, body := range []string{
		`{"enabled":true}`, `{"url":"https://example.com/hooks"}`, `{"types":["transfer.*"]}`, `{"description":"Books"}`, `{"description":" Books ","enabled":true}`,
	} {
		if got := s.Call(t, "PATCH", path, body, key...); got.Status != 200 {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM audit_log WHERE action = 'webhook_updated'`); n != 0 {
		t.Errorf("%d entries about nothing", n)
	}
	if after := pgtest.LookUp[string](t, s.Store, `SELECT row_to_json(webhooks)::text FROM webhooks`); after != before {
		t.Errorf("the webhook is %s, was %s", after, before)
	}
}

// Deliveries come in pages, newest first.
func TestListDeliveries_Pages(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	path := "/v2/webhooks/" + s.CreateWebhook(t, key)
	var sent, got []string
	for range 5 {
		var answer struct{ EventID string }
		response := s.Send(t, "POST", path+"/test", "", key...)
		if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &answer); err != nil {
			t.Fatal(err)
		}
		sent = append([]string{answer.EventID}, sent...)
	}
	for after, pages := "", 1; ; pages++ {
		var page struct {
			Deliveries []struct{ EventID, Type, Status string }
			Next       *string
		}
		response := s.Send(t, "GET", path+"/deliveries?limit=2"+after, "", key...)
		if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &page); err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Deliveries {
			got = append(got, d.EventID)
		}
		if page.Next == nil {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		after = "&after=" + *page.Next
	}
	if strings.Join(got, " ") != strings.Join(sent, " ") {
		t.Errorf("got  %s\nwant %s", got, sent)
	}
	webtest.Same(t, "failed ones", webtest.Want(t, 200, `{"deliveries":[],"next":null}`, noStore...), s.Call(t, "GET", path+"/deliveries?status=failed", "", key...))
	webtest.Same(t, "retry", webtest.Want(t, 202, "", noStore...), s.Call(t, "POST", path+"/deliveries/"+sent[0]+"/retry", "", key...))
}

// A page of one status ends where its scan ends, and the next page goes on from there: an empty page has a next one.
func TestListDeliveries_EmptyPage(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	id := s.CreateWebhook(t, key)
	path := "/v2/webhooks/" + id + "/deliveries?status=delivered"
	pgtest.Exec(t, s.Store, `INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, created_at, updated_at)
		SELECT $1, md5(n::text)::uuid, n, 'transfer.created', CASE n WHEN 1 THEN 'delivered' ELSE 'failed' END, 1, now(), now() FROM generate_series(1, 15000) n`, id)
	var pages [2]struct {
		Deliveries []struct{ Status string }
		Next       *string
	}
	for n := range pages {
		target := path
		if n > 0 {
			target += "&after=" + *pages[n-1].Next
		}
		if err := json.Unmarshal([]byte(s.text(t, target, key...)), &pages[n]); err != nil {
			t.Fatal(err)
		}
		if (pages[n].Next != nil) != (n == 0) || len(pages[n].Deliveries) != n {
			t.Fatalf("page %d: %+v", n, pages[n])
		}
	}
}

func TestWebhooks_Refusals(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	_, stranger := s.NewOwner(t)
	live := webtest.Keyed(uuid.MustParse(key[1]), "live")
	path := "/v2/webhooks/" + s.CreateWebhook(t, key)
	pgtest.Exec(t, s.Store, `INSERT INTO feed_pruned (account_id, environment, position) VALUES ($1, 'test', 1000)`, key[1])
	after := func(position int64) string {
		return fmt.Sprintf(`{"after":%q}`, feed.FormatCursor(feed.Owner{AccountID: uuid.MustParse(key[1]), Environment: network.Test}, position))
	}
	unknown := webtest.Refused(t, 404, "NOT_FOUND", "The account has no such webhook in the environment of this key.")
	notAllowed := webtest.Refused(t, 422, "URL_NOT_ALLOWED", "The URL must lead to a public address, at port 80 or 443.")
	for name, c := range map[string]struct {
		method, path, body string
		key                []string
		want               webtest.Answer
	}{
		"another account":     {"GET", path, "", stranger, unknown},
		"another environment": {"DELETE", path, "", live, unknown},
		"no id":               {"GET", "/v2/webhooks/1", "", key, unknown},
		"a change":            {"PATCH", "/v2/webhooks/1", `{"enabled":true}`, key, unknown},
		"a new secret":        {"POST", "/v2/webhooks/1/rotate-secret", "", key, unknown},
		"a test":              {"POST", "/v2/webhooks/1/test", "", key, unknown},
		"a replay":            {"POST", "/v2/webhooks/1/replay", after(0), key, unknown},
		"deliveries":          {"GET", "/v2/webhooks/1/deliveries", "", key, unknown},
		"an old cursor":       {"POST", path + "/replay", after(999), key, webtest.Refused(t, 410, "CURSOR_EXPIRED", "Events after the cursor are no longer kept; start again without one and compare with the list of transfers.")},
		"no delivery":         {"POST", path + "/deliveries/" + feed.ID(uuid.New()).String() + "/retry", "", key, webtest.Refused(t, 404, "NOT_FOUND", "The webhook has no delivery of such an event.")},
		"no event":            {"GET", path + "/deliveries/1", "", key, webtest.Refused(t, 404, "NOT_FOUND", "The webhook has no delivery of such an event.")},
		"no event id":         {"POST", path + "/deliveries/1/retry", "", key, webtest.Refused(t, 404, "NOT_FOUND", "The webhook has no delivery of such an event.")},
		"a parameter":         {"GET", path + "?a=b", "", key, webtest.Invalid(t, "a", "is not a known parameter")},
		"no URL":              {"POST", "/v2/webhooks", `{}`, key, webtest.Invalid(t, "/url", "must be an absolute URL of visible ASCII characters; write other names as xn--… and other characters percent-encoded")},
		"unknown field":       {"POST", "/v2/webhooks", `{"url":"https://a.example","secret":"x"}`, key, webtest.Invalid(t, "/secret", "is not a known field")},
		"unknown type":        {"POST", "/v2/webhooks", `{"url":"https://a.example","types":["transfer.done"]}`, key, webtest.Invalid(t, "/types", `names the unknown type "transfer.done"`)},
		"no types":            {"PATCH", path, `{"types":[]}`, key, webtest.Invalid(t, "/types", `names no type`)},
		"private":             {"POST", "/v2/webhooks", `{"url":"https://10.0.0.1/"}`, key, notAllowed},
		"private by change":   {"PATCH", path, `{"url":"https://[::1]/"}`, key, notAllowed},
		"nothing to change":   {"PATCH", path, `{}`, key, webtest.Invalid(t, "", "names nothing to change; give url, types, description or enabled")},
		"a long grace":        {"POST", path + "/rotate-secret", `{"gracePeriod":604801}`, key, webtest.Invalid(t, "/gracePeriod", "must be 0 to 604800 seconds")},
		"another's cursor": {
			"POST", path + "/replay", fmt.Sprintf(`{"after":%q}`, feed.FormatCursor(feed.Owner{AccountID: uuid.New(), Environment: network.Test}, 7)), key,
			webtest.Invalid(t, "/after", "is not a cursor of this feed; take it from next"),
		},
		"a status": {"GET", path + "/deliveries?status=done&limit=0", "", key, webtest.Invalid(t, "limit", "must be a whole number from 1 to 1000", "status", "must be pending, retrying, delivered or failed")},
		"a cursor": {"GET", path + "/deliveries?after=x", "", key, webtest.Invalid(t, "after", "is not a cursor of this list; take it from next")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.Call(t, c.method, c.path, c.body, c.key...)
			webtest.Same(t, name, c.want, got)
		})
	}
}

// An account has 20 webhooks of both environments together.
func TestCreateWebhook_TooMany(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	owner, key := s.NewOwner(t)
	for n := range webhooks.MaxEndpoints {
		s.CreateWebhook(t, webtest.Keyed(owner, []string{"test", "live"}[n%2]))
	}
	got := s.Call(t, "POST", "/v2/webhooks", `{"url":"https://example.com/hooks"}`, key...)
	webtest.Same(t, "the 21st", webtest.Refused(t, 409, "TOO_MANY_WEBHOOKS", "The account has as many webhooks as it may; delete one first."), got)
}

func TestWebhooks_NotConfigured(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, key := s.NewOwner(t)
	webtest.Same(t, "without a key", webtest.Refused(t, 503, "WEBHOOKS_NOT_CONFIGURED", "The operator has configured no key for the secrets of webhooks."),
		s.Call(t, "GET", "/v2/webhooks", "", key...))
}

// An account replays to all of its webhooks together as often as it may, and another account is not concerned.
func TestReplayWebhook_Quota(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	_, other := s.NewOwner(t)
	first, second, others := s.CreateWebhook(t, key), s.CreateWebhook(t, key), s.CreateWebhook(t, other)
	replay := func(id string, key []string) webtest.Answer {
		t.Helper()
		cursor := feed.FormatCursor(feed.Owner{AccountID: uuid.MustParse(key[1]), Environment: network.Test}, 0)
		return s.Call(t, "POST", "/v2/webhooks/"+id+"/replay", fmt.Sprintf(`{"after":%q}`, cursor), key...)
	}
	for n := range webhooks.ReplayBurst {
		if got := replay([]string{first, second}[n%2], key); got.Status != http.StatusAccepted {
			t.Fatalf("the replay %d: %+v", n, got)
		}
	}
	refusal := webtest.Refused(t, 429, "TOO_MANY_REPLAYS", "The account has replayed as often as it may for now; read the feed, or wait as long as Retry-After says.")
	refusal.Header["Retry-After"] = "1800"
	got := replay(first, key)
	webtest.Same(t, "one more", refusal, got)
	if got := replay(others, other); got.Status != http.StatusAccepted {
		t.Errorf("another account: %+v", got)
	}
	pgtest.Exec(t, s.Store, "UPDATE webhook_quotas SET replays_until = replays_until - interval '30 minutes' WHERE account_id = $1", key[1])
	if got := replay(first, key); got.Status != http.StatusAccepted {
		t.Errorf("half an hour later: %+v", got)
	}
	if got := replay(first, key); got.Status != http.StatusTooManyRequests {
		t.Errorf("and once more: %+v", got)
	}
}

// A test of each type is queued, and its delivery shows what is sent; another type is none.
func TestTestWebhook_Types(t *testing.T) {
	t.Parallel()
	s := start(t, webtest.WithWebhooks(t))
	_, key := s.NewOwner(t)
	path := "/v2/webhooks/" + s.CreateWebhook(t, key)
	for _, kind := range webhooks.TestTypes() {
		response := s.Send(t, "POST", path+"/test", fmt.Sprintf(`{"type":%q}`, kind), key...)
		var tested struct{ EventID string }
		if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &tested); err != nil || response.StatusCode != http.StatusAccepted {
			t.Fatalf("%s: %d, %v", kind, response.StatusCode, err)
		}
		var delivery struct{ Type, RequestBody string }
		if err := json.Unmarshal([]byte(s.text(t, path+"/deliveries/"+tested.EventID, key...)), &delivery); err != nil {
			t.Fatal(err)
		}
		if delivery.Type != string(kind) || !strings.Contains(delivery.RequestBody, fmt.Sprintf(`"type":%q`, kind)) ||
			strings.HasPrefix(string(kind), "transfer.") != strings.Contains(delivery.RequestBody, `"simulated":true`) {
			t.Errorf("%s: %+v", kind, delivery)
		}
	}
	const types = "transfer.created, transfer.submitted, transfer.confirmed, transfer.filled, transfer.refunded, transfer.failed, transfer.expired, " +
		"transfer.cancelled, transfer.reorganized, transfer.refundable, transfer.updated, webhook.disabled, webhook.test"
	webtest.Same(t, "unknown type", webtest.Invalid(t, "/type", "must be one of "+types), s.Call(t, "POST", path+"/test", `{"type":"transfer.done"}`, key...))
	webtest.Same(t, "a pattern", webtest.Invalid(t, "/type", "must be one of "+types), s.Call(t, "POST", path+"/test", `{"type":"transfer.*"}`, key...))
	webtest.Same(t, "unknown member", webtest.Invalid(t, "/types", "is not a known field"), s.Call(t, "POST", path+"/test", `{"types":[]}`, key...))
}
