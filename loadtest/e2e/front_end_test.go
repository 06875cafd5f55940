package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
)

// frontEnd is a page of another site than the service's, in a browser. It has no key.
type frontEnd struct {
	*tab

	origin string
}

// openFrontEnd opens the page of a site of its own.
func openFrontEnd(t *testing.T) *frontEnd {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Shop</title><p>Shop`)
	}))
	t.Cleanup(site.Close)
	f := &frontEnd{tab: openTab(chromium(t), t), origin: site.URL}
	f.allowed = site.URL
	f.do(chromedp.Navigate(site.URL))
	return f
}

// fetched is what a page's fetch of the service gives: the response as far as the page may read it, or the error.
type fetched struct {
	Status    int
	Code      string
	State     string `json:"state"`
	Hash      string `json:"hash"`
	RateLimit string
	Error     string
}

// fetch has the page make a request with a token.
func (f *frontEnd) fetch(method, path, token, body string) fetched {
	f.t.Helper()
	options := map[string]any{"method": method, "headers": map[string]string{"Authorization": "Bearer " + token}}
	if body != "" {
		options["headers"] = map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json"}
		options["body"] = body
	}
	text := must(json.Marshal(options))(f.t)
	return evaluate[fetched](f.tab, fmt.Sprintf(`fetch(%q, %s).then(async (answer) => {
		const { code, status, metadata } = await answer.json()
		return { Status: answer.status, Code: code ?? '', state: status ?? '', hash: metadata?.hash ?? '', RateLimit: answer.headers.get('ratelimit') ?? '' }
	}, (error) => ({ Error: error.message }))`, shared.Stack.Env().GatewayURL+path, text))
}

// A page of another site that has a client token alone reads its intent, preflights and reports it, and can do nothing else. A page of a site that the
// account has not listed can do nothing at all.
func TestFrontEnd(t *testing.T) {
	journey(t)
	t.Parallel()
	developer := newPerson(t, shared.Stack.Env().GatewayURL)
	key := developer.newKey().Key
	server := apiClient(t, shared.Stack.Env().GatewayURL, key)
	page := openFrontEnd(t)
	intent := create(t, server, payment("1000000"))
	code := map[string]string{}
	for _, block := range captionedBlock.FindAllSubmatch(docsPage(t, "front-ends"), -1) {
		code[string(block[1])] = html.UnescapeString(string(block[2]))
	}
	var token intents.ClientToken
	if said := runShell(t, filled(code["token"], "INTENT_ID", intent.ID), key); json.Unmarshal([]byte(said), &token) != nil || token.Token == "" {
		t.Fatalf("the sample of the docs said %s", said)
	}
	path, hash := "/v2/transfers/"+intent.ID, "0x"+strings.Repeat("ab", 32)

	t.Log("before its origin is listed the page cannot read a response, and nothing is done")
	if got := page.fetch(http.MethodPost, path+"/transaction", token.Token, `{"hash":"`+hash+`"}`); got.Error == "" {
		t.Errorf("an unlisted page: %+v", got)
	}
	page.taken() // the browser says in its console that it keeps the response from the page
	if now := must(server.Transfers.Get(t.Context(), intent.ID))(t); now.Status != intents.StatusCreated {
		t.Errorf("an unlisted page has made the intent %s", now.Status)
	}

	t.Log("listed, it reads, preflights and reports")
	if said := runShell(t, filled(code["origins"], "https://app.example.com", page.origin), key); !strings.Contains(said, page.origin) {
		t.Fatalf("the sample of the docs said %s", said)
	}
	asynctest.Succeeds(t, func() error {
		if got := page.fetch(http.MethodGet, path, token.Token, ""); got.Status != 200 || got.State != "created" || got.RateLimit == "" {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	page.taken()
	// No node of the chain answers this stack, which the page learns as the key does.
	_, err := server.Transfers.Preflight(t.Context(), intent.ID)
	refused, _ := errors.AsType[*intents.Error](err)
	if refused == nil {
		t.Fatalf("a preflight with the key: %v", err)
	}
	if got := page.fetch(http.MethodGet, path+"/preflight", token.Token, ""); got.Status != refused.Status || got.Code != string(refused.Code) {
		t.Errorf("preflight: %+v, with the key %v", got, refused)
	}
	reported := page.fetch(http.MethodPost, path+"/transaction", token.Token, `{"hash":"`+hash+`"}`)
	reported.RateLimit = ""
	if diff := cmp.Diff(fetched{Status: 200, State: "submitted", Hash: hash}, reported); diff != "" {
		t.Errorf("the report (-want +got):\n%s", diff)
	}

	t.Log("nothing else: not another intent, not another route, and nothing with an expired token")
	other := create(t, server, payment("2000000"))
	if got := page.fetch(http.MethodGet, "/v2/transfers/"+other.ID, token.Token, ""); got.Status != 403 || got.Code != "CLIENT_TOKEN_NOT_ALLOWED" {
		t.Errorf("another intent: %+v", got)
	}
	if got := page.fetch(http.MethodPost, path+"/cancel", token.Token, ""); got.Error == "" {
		t.Errorf("another route: %+v", got)
	}
	brief := must(server.Transfers.CreateClientToken(t.Context(), intent.ID, intents.CreateClientToken{ExpiresIn: 1}))(t)
	asynctest.Succeeds(t, func() error {
		if got := page.fetch(http.MethodGet, path, brief.Token, ""); got.Status != 401 || got.Code != "INVALID_CLIENT_TOKEN" || time.Now().Before(brief.ExpiresAt) {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	page.taken()
}
