package client_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"intents.internal/pkg/client"
)

// retryCase is a row of testdata/retries.json, which the client in TypeScript is held to as well.
type retryCase struct {
	Name      string
	Request   string
	Responses []scriptedResponse
	Deadline  int64
	Tries     int
	Waits     []int64
	Error     *struct {
		Status int
		Code   client.Code
	}
}

type scriptedResponse struct {
	Status           int
	Headers          map[string]string
	Body             json.RawMessage
	Text             *string
	Close, Cut, Hang bool
}

// readTable reads a table of testdata.
func readTable(t *testing.T, name string, table any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(text, table)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestClient_Retries(t *testing.T) {
	t.Parallel()
	var table struct {
		Now   time.Time
		Cases []retryCase
	}
	readTable(t, "retries.json", &table)
	if len(table.Cases) < 30 {
		t.Fatalf("%d cases", len(table.Cases))
	}
	for _, c := range table.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.run(t, table.Now)
		})
	}
}

func (c retryCase) run(t *testing.T, now time.Time) {
	t.Helper()
	server := &scriptedServer{responses: c.Responses}
	service := httptest.NewServer(server)
	defer service.Close()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	server.other = other.URL

	api := newClient(t, service.URL)
	waits := []int64{}
	api.SetClock(now, 1, func(ctx context.Context, pause time.Duration) error {
		waits = append(waits, pause.Milliseconds())
		return ctx.Err()
	})
	ctx := t.Context()
	if c.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.Deadline)*time.Millisecond)
		defer cancel()
	}
	err := callOf(t, api, c.Request)(ctx)

	if got := server.tries(); got != c.Tries {
		t.Errorf("%d tries, want %d", got, c.Tries)
	}
	if diff := gocmp.Diff(c.Waits, waits); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	var failure *client.Error
	switch {
	case c.Error == nil && err != nil:
		t.Errorf("failed: %v", err)
	case c.Error != nil && !errors.As(err, &failure):
		t.Errorf("error %v", err)
	case c.Error != nil && (failure.Status != c.Error.Status || failure.Code != c.Error.Code):
		t.Errorf("error %d %q, want %d %q: %v", failure.Status, failure.Code, c.Error.Status, c.Error.Code, err)
	}
	keys := server.keys()
	if len(keys) > 1 || (c.Request == "create") == keys[""] {
		t.Errorf("Idempotency-Keys %v", keys)
	}
}

func newClient(t *testing.T, base string) *client.Client {
	t.Helper()
	api, err := client.New(base, "sk_test_key")
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func callOf(t *testing.T, api *client.Client, request string) func(context.Context) error {
	t.Helper()
	calls := map[string]func(context.Context) error{
		"get": func(ctx context.Context) error { _, err := api.Transfers.Get(ctx, "id"); return err },
		"create": func(ctx context.Context) error {
			_, err := api.Transfers.Create(ctx, client.CreateTransfer{QuoteID: "q"})
			return err
		},
		"delete": func(ctx context.Context) error { return api.Webhooks.Delete(ctx, "id") },
		"report": func(ctx context.Context) error { _, err := api.Transfers.Report(ctx, "id", "0x1"); return err },
		"update": func(ctx context.Context) error {
			_, err := api.Webhooks.Update(ctx, "id", client.UpdateWebhook{})
			return err
		},
	}
	if calls[request] == nil {
		t.Fatalf("no request %q", request)
	}
	return calls[request]
}

// scriptedServer gives its responses in order.
type scriptedServer struct {
	responses []scriptedResponse
	other     string

	mu   sync.Mutex
	seen []string // the Idempotency-Key of each request
}

func (s *scriptedServer) tries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// keys are the different Idempotency-Keys.
func (s *scriptedServer) keys() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[string]bool{}
	for _, key := range s.seen {
		keys[key] = true
	}
	return keys
}

func (s *scriptedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	s.seen = append(s.seen, r.Header.Get("Idempotency-Key"))
	n := len(s.seen)
	s.mu.Unlock()
	if n > len(s.responses) || r.Header.Get("X-Api-Key") != "sk_test_key" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	response := s.responses[n-1]
	switch {
	case response.Close:
		panic(http.ErrAbortHandler)
	case response.Hang:
		<-r.Context().Done()
		return
	}
	for name, value := range response.Headers {
		w.Header().Set(name, strings.Replace(value, "{other}", s.other, 1))
	}
	body := response.body()
	if response.Cut {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)+1))
	}
	w.WriteHeader(response.Status)
	_, _ = io.WriteString(w, body)
	if response.Cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// body is what is left out in the table: a record, or an error.
func (r scriptedResponse) body() string {
	code := "UNAVAILABLE"
	if r.Status == http.StatusTooManyRequests {
		code = "RATE_LIMITED"
	}
	switch {
	case r.Text != nil:
		return *r.Text
	case r.Status < 300:
		return cmp.Or(string(r.Body), `{"id": "id"}`)
	default:
		return cmp.Or(string(r.Body), `{"code": "`+code+`", "message": "later"}`)
	}
}

func TestTransfers_Wait(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			Name  string
			Until client.TransferStatus
			Reads []json.RawMessage
			Shown []client.TransferStatus
			Ends  client.TransferStatus
			Error client.Code
		}
	}
	readTable(t, "waits.json", &table)
	if len(table.Cases) < 7 {
		t.Fatalf("%d cases", len(table.Cases))
	}
	for _, c := range table.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			n := 0
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v2/events" { // each wait looks by itself
					http.NotFound(w, r)
					return
				}
				writeRead(t, w, c.Reads[min(n, len(c.Reads)-1)])
				n++
			}))
			defer service.Close()
			api := newClient(t, service.URL)
			api.SetClock(time.Now(), 0, func(ctx context.Context, _ time.Duration) error { return ctx.Err() })
			var shown []client.TransferStatus
			last, err := api.Transfers.Wait(t.Context(), "id", client.WaitOptions{
				Until: c.Until, OnChange: func(transfer *client.Transfer) { shown = append(shown, transfer.Status) },
			})
			if diff := gocmp.Diff(c.Shown, shown); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
			if c.Error == "" && (err != nil || last.Status != c.Ends) || c.Error != "" && !errors.Is(err, c.Error) {
				t.Errorf("ends with %+v, %v", last, err)
			}
		})
	}
}

// writeRead writes [status, ended], or an error of {status, code}.
func writeRead(t *testing.T, w http.ResponseWriter, read json.RawMessage) {
	t.Helper()
	var failure struct {
		Status int
		Code   string
	}
	if json.Unmarshal(read, &failure) == nil {
		w.WriteHeader(failure.Status)
		fmt.Fprintf(w, `{"code": %q, "message": "no"}`, failure.Code)
		return
	}
	var record [2]any
	if err := json.Unmarshal(read, &record); err != nil {
		t.Error(err)
	}
	fmt.Fprintf(w, `{"id": "id", "status": %q, "ended": %v}`, record[0], record[1])
}

// A caller that goes away ends the wait, with the intent as it was last read.
func TestTransfers_WaitEndsWithContext(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id": "id", "status": "submitted", "final": false}`)
	}))
	defer service.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the program ends")
	last, err := newClient(t, service.URL).Transfers.Wait(ctx, "id", client.WaitOptions{OnChange: func(*client.Transfer) { cancel(reason) }})
	if !errors.Is(err, reason) || last == nil || last.Status != client.StatusSubmitted {
		t.Errorf("%+v, %v", last, err)
	}
}

// While the feed cannot be followed, the time between reads grows by half up to ten seconds, and begins again at a change.
func TestTransfers_WaitIntervals(t *testing.T) {
	t.Parallel()
	statuses := []string{"created", "created", "created", "created", "created", "created", "created", "created", "submitted", "submitted", "confirmed"}
	n := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/events" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"status": %q, "final": %v}`, statuses[n], n == len(statuses)-1)
		n++
	}))
	defer service.Close()
	api := newClient(t, service.URL)
	var waits []int64
	api.SetClock(time.Now(), 0, func(_ context.Context, pause time.Duration) error {
		waits = append(waits, pause.Milliseconds())
		return nil
	})
	if _, err := api.Transfers.Wait(t.Context(), "id", client.WaitOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]int64{1000, 1500, 2250, 3375, 5062, 7593, 10000, 10000, 1000, 1500}, waits); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClient_MaxTries(t *testing.T) {
	t.Parallel()
	server := &scriptedServer{responses: []scriptedResponse{{Status: http.StatusServiceUnavailable}}}
	service := httptest.NewServer(server)
	defer service.Close()
	api, err := client.New(service.URL, "sk_test_key", client.WithMaxTries(1))
	if err != nil {
		t.Fatal(err)
	}
	var failure *client.Error
	if _, err := api.Transfers.Get(t.Context(), "id"); !errors.As(err, &failure) || failure.Status != 503 || server.tries() != 1 {
		t.Errorf("%d tries: %v", server.tries(), err)
	}
}

func TestNew_Refusals(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"", "k"},
		{"intents.example.com", "k"},
		{"ftp://intents.example.com", "k"},
		{"https://", "k"},
		{"https://a:b@intents.example.com", "k"},
		{"https://intents.example.com?a", "k"},
		{"https://intents.example.com#a", "k"},
		{"https://intents.example.com?", "k"},
		{"https://intents.example.com#", "k"},
		{"https://:443", "k"},
		{"https://intents.example.com", ""},
		{"https://intents.example.com", "k\n"},
		{"https://intents.example.com", "ké"},
	} {
		if api, err := client.New(c[0], c[1]); err == nil {
			t.Errorf("%q: %+v", c, api)
		}
	}
}

// Whatever a name is, it stays one part of the path, at the same origin.
func TestTransfers_HostileNames(t *testing.T) {
	t.Parallel()
	var paths []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.RequestURI)
		fmt.Fprint(w, `{}`)
	}))
	defer service.Close()
	api := newClient(t, service.URL)
	for _, id := range []string{"a/../b", "a?b", "a#b", "@evil.example", "//evil.example", "%2e%2e", "a b"} {
		if _, err := api.Transfers.Get(t.Context(), id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", ".", ".."} {
		if _, err := api.Transfers.Cancel(t.Context(), id); err == nil || !strings.Contains(err.Error(), "names nothing") {
			t.Errorf("%q: %v", id, err)
		}
		if err := api.Webhooks.Delete(t.Context(), id); err == nil {
			t.Errorf("%q was deleted", id)
		}
	}
	want := []string{"a%2F..%2Fb", "a%3Fb", "a%23b", "@evil.example", "%2F%2Fevil.example", "%252e%252e", "a%20b"}
	for i := range want {
		want[i] = "/v2/transfers/" + want[i]
	}
	if diff := gocmp.Diff(want, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, text := range []string{"", "0", "7", "99999999999999999999", "-1", "1.5", "soon", "Thu, 01 Jan 2026 00:00:09 GMT", "Thursday, 01-Jan-26 00:00:09 GMT"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if after, ok := client.ParseRetryAfter(text, time.Unix(1767225600, 0)); after < 0 || !ok && after != 0 {
			t.Errorf("%q: %s", text, after)
		}
	})
}
