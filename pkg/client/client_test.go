package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"intents.internal/pkg/client"
)

// A change leaves members out, sets them, or sets them to null.
func TestUpdateWebhook_JSON(t *testing.T) {
	t.Parallel()
	off := false
	for want, update := range map[string]client.UpdateWebhook{
		`{}`:                                  {},
		`{"types":null,"description":null}`:   {Types: client.SetToNull[[]string](), Description: client.SetToNull[string]()},
		`{"types":["a"],"description":""}`:    {Types: client.SetTo([]string{"a"}), Description: client.SetTo("")},
		`{"url":"https://a","enabled":false}`: {URL: "https://a", Enabled: &off},
	} {
		if got, err := json.Marshal(update); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}

// An error has what the response tells, also members beside details.
func TestError_Members(t *testing.T) {
	t.Parallel()
	const body = `{"code": "CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT", "message": "use another key", "chainId": 1, "keyEnv": "test", "details": {"a": 1}}`
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, body)
	}))
	defer service.Close()
	_, err := newClient(t, service.URL).Transfers.Get(t.Context(), "id")
	var failure *client.Error
	if !errors.As(err, &failure) {
		t.Fatal(err)
	}
	want := client.Error{
		Status: 403, Code: client.CodeChainNotAllowedForKeyEnvironment, Message: "use another key", RequestID: "req-1", RetryAfter: 90 * time.Second,
		Details: json.RawMessage(`{"a": 1}`), Body: json.RawMessage(body),
	}
	if diff := gocmp.Diff(want, *failure, cmpopts.IgnoreUnexported(client.Error{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a log shows of an error has the first issue and the request id, here of the body alone, and of a connection error the base URL.
func TestError_Text(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"code": "INVALID_REQUEST", "message": "Not valid.", "details": {"issues": [{"path": "/a", "message": "is required"}, {"path": "/b", "message": "no"}]}, `+
			`"requestId": "req-1"}`)
	}))
	defer service.Close()
	_, err := newClient(t, service.URL).Transfers.Get(t.Context(), "id")
	if want := "400 INVALID_REQUEST: Not valid. First: /a is required. (request req-1)"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	if _, err := newClient(t, closed.URL).Transfers.Get(t.Context(), "id"); err == nil || !strings.Contains(err.Error(), closed.URL+"/v2/transfers/id") {
		t.Errorf("%v does not name %s", err, closed.URL)
	}
}

// A search without text is sent as it is, so that the service refuses it: without the parameter it would answer all tokens.
func TestTokens_Search(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `[{"symbol": %q}]`, r.URL.RawQuery)
	}))
	defer service.Close()
	tokens := newClient(t, service.URL).Tokens
	for want, got := range map[string]func() ([]client.Token, error){
		"":                             func() ([]client.Token, error) { return tokens.List(t.Context(), "") },
		"chain-id=eip155%3A1":          func() ([]client.Token, error) { return tokens.List(t.Context(), "eip155:1") },
		"search=":                      func() ([]client.Token, error) { return tokens.Search(t.Context(), "", "") },
		"chain-id=eip155%3A1&search=b": func() ([]client.Token, error) { return tokens.Search(t.Context(), "b", "eip155:1") },
	} {
		if all, err := got(); err != nil || len(all) != 1 || all[0].Symbol != want {
			t.Errorf("%v, %v, want %q", all, err, want)
		}
	}
}

// The feed is read from page to page, and an expired cursor ends it: it does not begin again elsewhere.
func TestEvents_FollowExpired(t *testing.T) {
	t.Parallel()
	var queries []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		switch r.URL.Query().Get("after") {
		case "c1":
			fmt.Fprint(w, `{"events": [{"id": "evt_1", "type": "transfer.filled", "data": {"id": "a"}}, {"id": "evt_2", "type": "news", "data": 1}], "next": "c2"}`)
		case "c2":
			fmt.Fprint(w, `{"events": [], "next": "c3"}`)
		default:
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"code": "CURSOR_EXPIRED", "message": "begin again"}`)
		}
	}))
	defer service.Close()
	var seen []string
	for page, err := range newClient(t, service.URL).Events.Follow(t.Context(), client.EventQuery{After: "c1", Types: []string{"transfer.*", "news"}}) {
		if err != nil {
			seen = append(seen, fmt.Sprint(errors.Is(err, client.CodeCursorExpired)))
			continue
		}
		for _, event := range page.Events {
			seen = append(seen, fmt.Sprintf("%s %t %t", event.ID, event.Transfer != nil, event.Webhook != nil))
		}
		seen = append(seen, page.Next)
	}
	if diff := gocmp.Diff([]string{"evt_1 true false", "evt_2 false false", "c2", "c3", "true"}, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rest := "&types=transfer.%2A%2Cnews&wait=25"
	if diff := gocmp.Diff([]string{"after=c1" + rest, "after=c2" + rest, "after=c3" + rest}, queries); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A list's Link gives the cursor alone, whatever server it names, also that of an empty page, and every field of the query reaches the service.
func TestTransfers_All(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the key left") }))
	defer other.Close()
	var queries []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		switch r.URL.Query().Get("cursor") {
		case "":
			w.Header().Set("Link", "<"+other.URL+`/v2/transfers?cursor=second>; rel="next"`)
		case "second":
			w.Header().Set("Link", `</v2/transfers?cursor=third>; rel="next"`)
			fmt.Fprint(w, `[]`)
			return
		}
		fmt.Fprint(w, `[{"id": "a"}]`)
	}))
	defer service.Close()
	query := client.TransferQuery{
		Type: client.TypeSwap, Status: []client.TransferStatus{client.StatusCreated, client.StatusFilled}, ChainID: "eip155:1", OrderID: "o", Hash: "h",
		Reference: "r", Labels: map[string]string{"order": "4 2"}, Batch: "b", UpdatedSince: time.Unix(1767225600, 5e6), Limit: 7,
	}
	count := 0
	for transfer, err := range newClient(t, service.URL).Transfers.All(t.Context(), query) {
		if err != nil || transfer.ID != "a" {
			t.Errorf("%+v, %v", transfer, err)
		}
		count++
	}
	all := "hash=h&label.order=4+2&limit=7&order-id=o&reference=r&status=created%2Cfilled&type=swap&updated-since=2026-01-01T00%3A00%3A00.005Z"
	want := []string{"batch=b&chain-id=eip155%3A1&" + all, "batch=b&chain-id=eip155%3A1&cursor=second&" + all, "batch=b&chain-id=eip155%3A1&cursor=third&" + all}
	if diff := gocmp.Diff(want, queries); diff != "" || count != 2 {
		t.Errorf("%d intents (-want +got):\n%s", count, diff)
	}
}
