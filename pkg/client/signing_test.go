package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"intents.internal/pkg/client"
)

const typedDataJSON = `{"types":{` +
	`"EIP712Domain":[{"name":"name","type":"string"},{"name":"version","type":"string"},{"name":"chainId","type":"uint256"},` +
	`{"name":"verifyingContract","type":"address"}],` +
	`"TransferWithAuthorization":[{"name":"from","type":"address"},{"name":"value","type":"uint256"}]},` +
	`"domain":{"name":"Test Euro Coin","version":"2","chainId":31337,"verifyingContract":"0x0Ae627987397e9aaADEeea8D9B57E01C48c504FE"},` +
	`"primaryType":"TransferWithAuthorization",` +
	`"message":{"value":"115792089237316195423570985008687907853269984665640564039457584007913129639935","from":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"}}`

// An intent that is signed: typed data reaches the wallet as the service gave it, the signature the service, and the relay's transaction the caller.
func TestTransfers_Signing(t *testing.T) {
	t.Parallel()
	digest := "0x11"
	var requests []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, r.Method+" "+r.URL.Path+" "+string(body))
		record := `{"id":"one","status":"created","tx":null,"signing":{"scheme":"erc3009","typedData":` + typedDataJSON + `,"digest":"` + digest +
			`","expiresAt":"2026-01-01T00:00:00Z","allowance":null,"permit":null,"signedAt":%s,"revoke":null}}`
		switch r.Method + " " + r.URL.Path {
		case "POST /v2/transfers":
			fmt.Fprintf(w, record, "null")
		case "POST /v2/transfers/one/signature":
			fmt.Fprintf(w, record, `"2025-12-31T00:00:00Z","submitted":{"provider":"solver","status":"received","at":"2025-12-31T00:00:00Z","detail":null}`)
		case "GET /v2/transfers/one/relay":
			fmt.Fprint(w, `{"tx":{"chainId":31337,"to":"0xaa","data":"0xbb","value":"0"}}`)
		case "GET /v2/transfers/two/relay":
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"code":"NOT_SIGNED","message":"The user has not signed."}`)
		}
	}))
	defer service.Close()
	transfers := newClient(t, service.URL).Transfers
	made, err := transfers.Create(t.Context(), client.CreateTransfer{QuoteID: "quote", Signing: client.SigningSchemeERC3009, Submit: true})
	if err != nil {
		t.Fatal(err)
	}
	if typed, err := json.Marshal(made.Signing.TypedData); err != nil || string(typed) != typedDataJSON {
		t.Errorf("typed data %s, %v, want %s", typed, err, typedDataJSON)
	}
	signed, err := transfers.SubmitSignature(t.Context(), "one", "0xcc")
	if err != nil {
		t.Fatal(err)
	}
	signed.Signing.TypedData = nil
	at := time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC)
	want := &client.Signing{
		Scheme: client.SigningSchemeERC3009, Digest: &digest, ExpiresAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), SignedAt: &at,
		Submitted: &client.Submission{Provider: "solver", Status: client.SubmissionReceived, At: at},
	}
	if diff := gocmp.Diff(want, signed.Signing); diff != "" || made.Tx != nil {
		t.Errorf("tx %v, signing (-want +got):\n%s", made.Tx, diff)
	}
	relay, err := transfers.Relay(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(client.RelayTransaction{ChainID: 31337, To: "0xaa", Data: "0xbb", Value: "0"}, relay.Tx); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := transfers.Relay(t.Context(), "two"); !errors.Is(err, client.CodeNotSigned) {
		t.Errorf("an intent that is not signed: %v", err)
	}
	wanted := []string{
		`POST /v2/transfers {"quoteId":"quote","signing":"erc3009","submit":true}`, `POST /v2/transfers/one/signature {"signature":"0xcc"}`,
		"GET /v2/transfers/one/relay ", "GET /v2/transfers/two/relay ",
	}
	if diff := gocmp.Diff(wanted, requests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A cancelled intent has the transaction or the typed data by which its signatures become worthless.
func TestRevocation_JSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		typedDataJSON,
		`{"chainId":31337,"from":"0xaa","to":"0xbb","value":"0","data":"0x3ff9dcb1","allowances":[],"calls":{"version":"2.0.0","chainId":"0x7a69",` +
			`"from":"0xaa","atomicRequired":false,"calls":[]}}`,
	} {
		var revoke client.Revocation
		if err := json.Unmarshal([]byte(text), &revoke); err != nil {
			t.Fatal(err)
		}
		if (revoke.TypedData != nil) != (text == typedDataJSON) || (revoke.Transaction != nil) == (text == typedDataJSON) {
			t.Errorf("%s is %+v", text, revoke)
		}
		if got, err := json.Marshal(revoke); err != nil || string(got) != text {
			t.Errorf("%s, %v, want %s", got, err, text)
		}
	}
}
