package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/deploy/walk"
)

// A request is shown with its answer in one line each. One over the limit is made again once the service allows it, and a refused one ends the
// walk with what the service says.
func TestWalker_Post(t *testing.T) {
	t.Parallel()
	var got []string
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.URL.Path+" "+r.Header.Get("x-api-key")+" "+r.Header.Get("Idempotency-Key")+" "+string(body))
		if len(got) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"code":"RATE_LIMITED","message":"Wait."}`)
			return
		}
		if r.URL.Path == "/v2/transfers/batch" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"code":"UNKNOWN_TOKEN","message":"Token x is not in the registry."}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id":"an-id","type":"swap","status":"created","source":{"amount":"1"}}`)
	}))
	t.Cleanup(gateway.Close)
	quiet, err := newSender(map[string]string{"GATEWAY_URL": gateway.URL, "TEST_KEY": "sk_test_x"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	w := newWalker(quiet, &out)
	w.started, w.quote = time.Unix(0, 36), "a-quote"
	_, errSwap := w.post(t.Context(), walk.Request{Path: "/v2/transfers", Body: "{\n \"quoteId\": \"QUOTE\"}"})
	_, errBatch := w.post(t.Context(), walk.Request{Path: "/v2/transfers/batch", IdempotencyKey: "payroll-1", Body: `{"transfers": [` + strings.Repeat(" 1,", 100) + ` 1]}`})
	if errSwap != nil || errBatch == nil || errBatch.Error() != "POST /v2/transfers/batch: 422 UNKNOWN_TOKEN: Token x is not in the registry." {
		t.Errorf("%v; %v", errSwap, errBatch)
	}
	wantOut := `  > POST /v2/transfers {"quoteId":"a-quote"}
  < 429 RATE_LIMITED Wait.
    waits 1s
  < 201 swap an-id created
  > POST /v2/transfers/batch {"transfers":[` + strings.Repeat("1,", 43) + `…
  < 422 UNKNOWN_TOKEN Token x is not in the registry.
`
	if diff := cmp.Diff(wantOut, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	wantGot := []string{
		`/v2/transfers sk_test_x  {"quoteId":"a-quote"}`,
		`/v2/transfers sk_test_x  {"quoteId":"a-quote"}`,
		`/v2/transfers/batch sk_test_x payroll-1-10 {"transfers":[` + strings.Repeat("1,", 100) + `1]}`,
	}
	if diff := cmp.Diff(wantGot, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// What a walk cannot go on without is an error.
func TestWalker_NoRefund(t *testing.T) {
	t.Parallel()
	if err := (&walker{}).walk(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "refund-me") {
		t.Error(err)
	}
	if _, err := walk.RequestOf("go run ./deploy/local send ID", time.Now()); !errors.Is(err, walk.ErrNoRequest) {
		t.Error(err)
	}
}
