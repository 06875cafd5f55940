package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"intents.internal/pkg/client"
)

// batchServer is a service that keeps what was made by each Idempotency-Key. A batch with the reference "refused" is rejected because of it.
type batchServer struct {
	max     int
	keys    []string            // of the batches that were made or repeated, in order
	made    map[string][]string // the references by key
	longest int                 // the longest body
}

func (s *batchServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	s.longest = max(s.longest, len(text))
	var body struct{ Transfers []struct{ Reference string } }
	if err := json.Unmarshal(text, &body); err != nil || r.URL.Path != "/v2/transfers/batch" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	key, references, refused := r.Header.Get("Idempotency-Key"), []string{}, -1
	for n, item := range body.Transfers {
		references = append(references, item.Reference)
		if item.Reference == "refused" {
			refused = n
		}
	}
	refuse := func(code, details string) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintf(w, `{"code": %q, "message": "No.", "details": %s}`, code, details)
	}
	made, known := s.made[key]
	switch {
	case len(references) > s.max:
		refuse("BATCH_TOO_LARGE", fmt.Sprintf(`{"max": %d}`, s.max))
	case known && !slices.Equal(made, references):
		refuse("IDEMPOTENCY_KEY_REUSED", `null`)
	case refused >= 0:
		refuse("BATCH_REJECTED", fmt.Sprintf(`{"failures": [{"index": %d, "code": "UNKNOWN_TOKEN", "message": "Which?"}]}`, refused))
	default:
		s.made[key], s.keys = references, append(s.keys, key)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id": %q, "count": %d}`, key, len(references))
	}
}

func startBatches(t *testing.T) (*batchServer, *client.Client) {
	t.Helper()
	server := &batchServer{max: 100, made: map[string][]string{}}
	service := httptest.NewServer(server)
	t.Cleanup(service.Close)
	return server, newClient(t, service.URL)
}

func payroll(key string, items int) client.CreateBatch {
	list := client.CreateBatch{IdempotencyKey: key}
	for n := range items {
		list.Transfers = append(list.Transfers, client.BatchItem{Reference: fmt.Sprint(n)})
	}
	return list
}

// A list is cut in its order, at 100 items, 64 KiB and the account's limit, and each part has its key.
func TestBatches_Create(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		items, max int
		reference  string
		want       []client.CreatedBatch
	}{
		{"one", 1, 100, "", []client.CreatedBatch{{ID: "pay", Count: 1}}},
		{"a full one", 100, 100, "", []client.CreatedBatch{{ID: "pay", Count: 100}}},
		{"one more", 101, 100, "", []client.CreatedBatch{{ID: "pay-1", Count: 100}, {ID: "pay-2", Count: 1}}},
		{"the account's limit", 80, 50, "", []client.CreatedBatch{{ID: "pay", Count: 50}, {ID: "pay-2", Count: 30}}},
		{"both", 120, 50, "", []client.CreatedBatch{{ID: "pay-1", Count: 50}, {ID: "pay-2", Count: 50}, {ID: "pay-3", Count: 20}}},
		{"long items", 100, 100, strings.Repeat("給", 256), []client.CreatedBatch{{ID: "pay", Count: 77}, {ID: "pay-2", Count: 23}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, api := startBatches(t)
			server.max = c.max
			list := payroll("pay", c.items)
			for n := range list.Transfers {
				list.Transfers[n].Reference += c.reference
			}
			got, err := api.Batches.Create(t.Context(), list)
			if diff := gocmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			var all []string
			for _, key := range server.keys {
				all = append(all, server.made[key]...)
			}
			for n, item := range list.Transfers {
				if all[n] != item.Reference {
					t.Fatalf("item %d is %s", n, all[n])
				}
			}
			if server.longest > 64<<10 {
				t.Errorf("a body of %d bytes", server.longest)
			}
		})
	}
}

// A key of the client's own is another one for each list.
func TestBatches_CreateWithoutKey(t *testing.T) {
	t.Parallel()
	server, api := startBatches(t)
	for range 2 {
		if _, err := api.Batches.Create(t.Context(), payroll("", 1)); err != nil {
			t.Fatal(err)
		}
	}
	if len(server.made) != 2 || len(server.keys[0]) < 20 {
		t.Errorf("keys %q", server.keys)
	}
}

// A part that fails leaves those before it, names its items by their place in the list, and a repeat makes what is missing.
func TestBatches_CreateFailed(t *testing.T) {
	t.Parallel()
	server, api := startBatches(t)
	list := payroll("pay", 250)
	list.Transfers[107].Reference = "refused"
	made, err := api.Batches.Create(t.Context(), list)
	if diff := gocmp.Diff([]client.CreatedBatch{{ID: "pay-1", Count: 100}}, made); diff != "" {
		t.Errorf("before the failure (-want +got):\n%s", diff)
	}
	var failure *client.Error
	if !errors.Is(err, client.CodeBatchRejected) || !errors.As(err, &failure) || err.Error() != "items 100 to 199 of the list: 422 BATCH_REJECTED: No." {
		t.Fatal(err)
	}
	want := []client.BatchFailure{{Index: 107, Code: client.CodeUnknownToken, Message: "Which?"}}
	if diff := gocmp.Diff(want, failure.BatchFailures()); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	list.Transfers[107].Reference = "mended"
	made, err = api.Batches.Create(t.Context(), list)
	if len(made) != 3 || err != nil {
		t.Fatal(made, err)
	}
	if diff := gocmp.Diff([]string{"pay-1", "pay-1", "pay-2", "pay-3"}, server.keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// However the account's limit changes between a call and its repeat, and wherever the call has ended, no item is made twice.
func TestBatches_CreateNeverTwice(t *testing.T) {
	t.Parallel()
	for _, items := range []int{80, 100, 101, 230} {
		for _, limits := range [][2]int{{100, 50}, {50, 100}, {50, 30}, {30, 50}, {100, 100}} {
			for _, ends := range []int{0, 55, 155, 229} {
				t.Run(fmt.Sprint(items, limits, ends), func(t *testing.T) {
					t.Parallel()
					server, api := startBatches(t)
					server.max = limits[0]
					list := payroll("pay", items)
					if ends < items {
						list.Transfers[ends].Reference = "refused"
					}
					_, first := api.Batches.Create(t.Context(), list)
					server.max = limits[1]
					if ends < items {
						list.Transfers[ends].Reference = fmt.Sprint(ends)
					}
					_, second := api.Batches.Create(t.Context(), list)
					if second != nil && !errors.Is(second, client.CodeIdempotencyKeyReused) {
						t.Error(second)
					}
					seen := map[string]bool{}
					for key, references := range server.made {
						for _, reference := range references {
							if seen[reference] {
								t.Fatalf("%s was made twice, by %s too; the calls ended with %v and %v", reference, key, first, second)
							}
							seen[reference] = true
						}
					}
					if second == nil && len(seen) != items {
						t.Errorf("%d of %d items", len(seen), items)
					}
				})
			}
		}
	}
}

// What the other methods send, and the failures of a report.
func TestBatches_Requests(t *testing.T) {
	t.Parallel()
	var seen []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, fmt.Sprint(r.Method, " ", r.URL.RequestURI(), " ", string(body)))
		switch r.Method {
		case http.MethodPost:
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"code": "STATUS_CONFLICT", "message": "No.", "details": {"failures": [{"index": 3, "code": "STATUS_CONFLICT", "message": "Sent."}]}}`)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	defer service.Close()
	api := newClient(t, service.URL)
	for _, get := range []func() error{
		func() error { _, err := api.Batches.Get(t.Context(), "b"); return err },
		func() error { _, err := api.Batches.Calls(t.Context(), "b", client.CallsQuery{}); return err },
		func() error {
			_, err := api.Batches.Calls(t.Context(), "b", client.CallsQuery{MaxCalls: 20})
			return err
		},
	} {
		if err := get(); err != nil {
			t.Error(err)
		}
	}
	_, all := api.Batches.Report(t.Context(), "b", "0x1")
	_, some := api.Batches.Report(t.Context(), "b", "0x1", "one", "two")
	for _, err := range []error{all, some} {
		var failure *client.Error
		want := []client.BatchFailure{{Index: 3, Code: client.CodeStatusConflict, Message: "Sent."}}
		if !errors.As(err, &failure) || !gocmp.Equal(want, failure.BatchFailures(), cmpopts.EquateEmpty()) {
			t.Errorf("%v", err)
		}
	}
	want := []string{
		"GET /v2/batches/b ", "GET /v2/batches/b/calls ", "GET /v2/batches/b/calls?max-calls=20 ",
		`POST /v2/batches/b/transaction {"hash":"0x1"}`, `POST /v2/batches/b/transaction {"hash":"0x1","transfers":["one","two"]}`,
	}
	if diff := gocmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
