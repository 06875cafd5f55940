package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/network"
)

// eventsAnswer is a page of events in short, with its next cursor and X-Poll-Wait.
type eventsAnswer struct {
	Types []string
	Wait  string
	next  string
}

func (s *service) events(t *testing.T, query string, key []string) eventsAnswer {
	t.Helper()
	response := s.Send(t, http.MethodGet, "/v2/events"+query, "", key...)
	text := webtest.ReadAll(t, response)
	var page struct {
		Events []struct{ Type string }
		Next   string
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", query, response.StatusCode, text, err)
	}
	got := eventsAnswer{Wait: response.Header.Get("X-Poll-Wait"), next: page.Next}
	for _, e := range page.Events {
		got.Types = append(got.Types, e.Type)
	}
	return got
}

func sameEvents(t *testing.T, what string, want, got eventsAnswer) {
	t.Helper()
	want.next = got.next
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(eventsAnswer{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// The events of an intent are those of the feed, and of no other key than one of its account and environment.
func TestListTransferEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	ann := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, webtest.SwapBody, ann...)
	s.CreateTransfer(t, webtest.SwapBody, ann...)
	s.Call(t, "POST", location+"/cancel", "", ann...)
	record, _ := s.Call(t, "GET", location, "", ann...).Body.(map[string]any)
	var mine []any
	page, _ := s.Call(t, "GET", "/v2/events", "", ann...).Body.(map[string]any)
	for _, e := range page["events"].([]any) {
		if e.(map[string]any)["data"].(map[string]any)["orderId"] == record["orderId"] {
			mine = append(mine, e)
		}
	}
	want := webtest.Want(t, 200, `{}`)
	want.Body = map[string]any{"events": mine}
	webtest.Same(t, "by id", want, s.Call(t, "GET", location+"/events", "", ann...))
	webtest.Same(t, "by order id", want, s.Call(t, "GET", "/v2/transfers/"+record["orderId"].(string)+"/events", "", ann...))
	if len(mine) != 2 {
		t.Errorf("%d events of the intent are in the feed", len(mine))
	}
	missing := s.Call(t, "GET", "/v2/transfers/"+uuid.NewString()+"/events", "", ann...)
	for name, key := range map[string][]string{"another account": webtest.Keyed(uuid.New(), "test"), "the other environment": webtest.Keyed(owner, "live")} {
		webtest.Same(t, name, missing, s.Call(t, "GET", location+"/events", "", key...))
	}
	if missing.Status != 404 {
		t.Errorf("an intent that does not exist is answered with %d", missing.Status)
	}
	webtest.Same(t, "query", webtest.Invalid(t, "limit", "is not a known parameter"), s.Call(t, "GET", location+"/events?limit=1", "", ann...))
}

func TestListEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := uuid.New()
	ann, bob := webtest.Keyed(account, "test"), webtest.Keyed(uuid.New(), "test")
	sameEvents(t, "an empty feed", eventsAnswer{}, s.events(t, "", ann))
	s.CreateTransfer(t, webtest.SwapBody, ann...)
	s.CreateTransfer(t, webtest.TransferBody, bob...)

	// What was answered can be read at once.
	got := s.Call(t, "GET", "/v2/events", "", ann...)
	body, _ := got.Body.(map[string]any)
	next, _ := body["next"].(string)
	body["next"] = "<next>"
	first := body["events"].([]any)[0].(map[string]any)
	if _, ok := feed.ParseID(first["id"].(string)); !ok {
		t.Errorf("the id %v", first["id"])
	}
	first["id"] = "<event>"
	first["data"].(map[string]any)["orderId"] = "<order id>"
	data := strings.TrimSuffix(summary("swap"), "}") + `,"from":null,"to":"created","hash":null,"failure":null,"failureReason":null}`
	webtest.Same(t, "the first event", webtest.Want(t, 200, `{"next":"<next>","events":[{"id":"<event>","type":"transfer.created","timestamp":"<time>",
		"environment":"test","sequence":1,"data":`+data+`}]}`), got)

	sameEvents(t, "at the end", eventsAnswer{}, s.events(t, "?after="+next, ann))
	sameEvents(t, "a wait at the end", eventsAnswer{Wait: "25"}, s.events(t, "?wait=25&after="+next, ann))
	sameEvents(t, "no wait", eventsAnswer{}, s.events(t, "?wait=0&after="+next, ann))
	sameEvents(t, "the other environment", eventsAnswer{Wait: "1"}, s.events(t, "?wait=1", webtest.Keyed(account, "live")))
	s.CreateTransfer(t, webtest.SwapBody, ann...)
	s.CreateTransfer(t, webtest.SwapBody, ann...)
	sameEvents(t, "the rest", eventsAnswer{Types: []string{"transfer.created", "transfer.created"}}, s.events(t, "?after="+next, ann))
	sameEvents(t, "a page", eventsAnswer{Types: []string{"transfer.created"}}, s.events(t, "?wait=5&limit=1&after="+next, ann))
	sameEvents(t, "others are left out", eventsAnswer{Wait: "5"}, s.events(t, "?wait=5&types=transfer.filled,webhook.*&after="+next, ann))
	sameEvents(t, "all", eventsAnswer{Types: []string{"transfer.created", "transfer.created"}}, s.events(t, "?types=*&after="+next, ann))
}

// after=now has nothing that was committed before and everything that is committed after.
func TestListEvents_FromNow(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := webtest.Keyed(uuid.New(), "test")
	for range 5 {
		s.CreateTransfer(t, webtest.TransferBody, ann...)
		now := s.events(t, "?after=now&wait=3", ann)
		sameEvents(t, "now", eventsAnswer{Wait: "3"}, now)
		sameEvents(t, "before", eventsAnswer{}, s.events(t, "?after="+now.next, ann))
		s.CreateTransfer(t, webtest.TransferBody, ann...)
		sameEvents(t, "after", eventsAnswer{Types: []string{"transfer.created"}}, s.events(t, "?after="+now.next, ann))
	}
}

func TestListEvents_InvalidQuery(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := uuid.New()
	ann := webtest.Keyed(account, "test")
	otherAccount := feed.FormatCursor(feed.Owner{AccountID: uuid.New(), Environment: network.Test}, 1)
	otherEnvironment := feed.FormatCursor(feed.Owner{AccountID: account, Environment: network.Live}, 1)
	const (
		cursor = "is not a cursor of this feed; take it from next"
		limit  = "must be a whole number from 1 to 1000"
		wait   = "must be a whole number from 0 to 25"
	)
	for query, issues := range map[string][]string{
		"after=":                     {"after", cursor},
		"after=" + otherAccount:      {"after", cursor},
		"after=" + otherEnvironment:  {"after", cursor},
		"after=now&after=now":        {"after", "is given twice"},
		"limit=":                     {"limit", limit},
		"limit=0":                    {"limit", limit},
		"limit=1001":                 {"limit", limit},
		"limit=01":                   {"limit", limit},
		"types=transfer.done":        {"types", `names the unknown type "transfer.done"`},
		"wait=":                      {"wait", wait},
		"wait=26":                    {"wait", wait},
		"wait=5s":                    {"wait", wait},
		"wait=1&wait=1":              {"wait", "is given twice"},
		"cursor=1":                   {"cursor", "is not a known parameter"},
		"limit=0&wait=99&types=none": {"limit", limit, "types", `names the unknown type "none"`, "wait", wait},
	} {
		webtest.Same(t, query, webtest.Invalid(t, issues...), s.Call(t, "GET", "/v2/events?"+query, "", ann...))
	}
}

func TestListEvents_CursorExpired(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := uuid.New()
	pgtest.Exec(t, s.Store, `INSERT INTO feed_pruned (account_id, environment, position) VALUES ($1, 'test', 1000)`, account)
	old := feed.FormatCursor(feed.Owner{AccountID: account, Environment: network.Test}, 999)
	webtest.Same(t, "an old cursor", webtest.Refused(t, 410, "CURSOR_EXPIRED",
		"Events after the cursor are no longer kept; start again without one and compare with the list of transfers."),
		s.Call(t, "GET", "/v2/events?wait=5&after="+old, "", webtest.Keyed(account, "test")...))
}
