package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"intents.internal/pkg/client"
)

// A client token is sent as such, and its wait does not ask for the feed, which tells of all intents of the account.
func TestNew_ClientToken(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+" "+string(body))
		_, _ = io.WriteString(w, map[bool]string{true: `{"id":"1","status":"submitted"}`, false: `{"id":"1","ended":true,"token":"ct_1"}`}[len(got) == 3])
	}))
	t.Cleanup(server.Close)
	keyed, err := client.New(server.URL, "sk_test_1")
	if err != nil {
		t.Fatal(err)
	}
	token, err := keyed.Transfers.CreateClientToken(t.Context(), "1", client.CreateClientToken{ExpiresIn: 60})
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := client.New(server.URL, token.Token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bearer.Transfers.Report(t.Context(), "1", "0xaa"); err != nil {
		t.Error(err)
	}
	if _, err := bearer.Transfers.Wait(t.Context(), "1", client.WaitOptions{}); err != nil {
		t.Error(err)
	}
	want := []string{
		`POST /v2/transfers/1/client-token sk_test_1 {"expiresIn":60}`, `POST /v2/transfers/1/transaction Bearer ct_1 {"hash":"0xaa"}`,
		`GET /v2/transfers/1 Bearer ct_1 `, `GET /v2/transfers/1 Bearer ct_1 `,
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
