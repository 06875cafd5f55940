package e2e_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	intents "intents.internal/pkg/client"
	"intents.internal/pkg/client/webhook"
)

// useGoClient makes a swap of a quote with the Go client, has it sent, waits until it is filled, reads its events from a stored cursor on,
// and verifies the webhook that tells of the fill. Every response is held to openapi.json.
func (w *readmeWalk) useGoClient(t *testing.T, send string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	api := w.goClient(t)
	filledEvents := receiveFilled(ctx, t, api)
	start := must(api.Events.List(ctx, intents.EventQuery{After: intents.Now}))(t)

	quotes := must(api.Quotes.Create(ctx, intents.CreateQuotes{
		Source:      intents.SourceRequest{Account: on(31337, alice), Token: on(31337, localUSDC), Amount: must(intents.ParseAmount("0.5", 6))(t)},
		Destination: intents.DestinationRequest{Account: on(31337, alice), Token: on(31337, localWETH)},
	}))(t)
	create := intents.CreateTransfer{QuoteID: quotes.Quotes[0].ID, Reference: "go", IdempotencyKey: uuid.NewString()}
	transfer := must(api.Transfers.Create(ctx, create))(t)
	if again := must(api.Transfers.Create(ctx, create))(t); again.ID != transfer.ID || transfer.Quote == nil || transfer.Tx == nil {
		t.Errorf("%+v, and again %s", transfer, again.ID)
	}
	w.run(filled(send, "ID", transfer.ID))

	var shown []intents.TransferStatus
	ended := must(api.Transfers.Wait(ctx, transfer.ID, intents.WaitOptions{
		Until: intents.StatusFilled, OnChange: func(transfer *intents.Transfer) { shown = append(shown, transfer.Status) },
	}))(t)
	if ended.Status != intents.StatusFilled || len(shown) == 0 || shown[len(shown)-1] != intents.StatusFilled {
		t.Errorf("ends %+v, after %v", ended, shown)
	}
	if got := followIntent(ctx, t, api, start.Next, transfer.ID); !cmp.Equal(got, []intents.TransferStatus{"created", "submitted", "confirmed", "filled"}) {
		t.Errorf("the feed told of %v", got)
	}
	for told := ""; told != transfer.ID; {
		select {
		case event := <-filledEvents:
			told = event.Transfer.ID
		case <-ctx.Done():
			t.Fatal("the webhook does not tell that the swap is filled")
		}
	}
	for listed, err := range api.Transfers.All(ctx, intents.TransferQuery{Reference: "go", Limit: 1}) {
		if err != nil || listed.ID != transfer.ID {
			t.Errorf("listed by its reference: %+v, %v", listed, err)
		}
	}
}

// goClient has a new key of the stack's account, so that the walk's key keeps its rate limit.
func (w *readmeWalk) goClient(t *testing.T) *intents.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	owner := person{client: apiClient(t, "")}
	owner.base, owner.http.Jar = w.value("GATEWAY_URL"), jar
	owner.post("/auth/sign-in/email", map[string]any{"email": w.value("ACCOUNT_EMAIL"), "password": w.value("ACCOUNT_PASSWORD")})
	api, err := intents.New(w.value("GATEWAY_URL"), owner.newKey().Key, intents.WithHTTPClient(&http.Client{Transport: checked{t}}))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// receiveFilled makes a webhook and returns the events that it gets, until the context ends.
func receiveFilled(ctx context.Context, t *testing.T, api *intents.Client) <-chan *intents.Event {
	t.Helper()
	events, secret := make(chan *intents.Event, 100), make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		current := <-secret
		secret <- current
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, webhook.MaxBody))
		if err != nil {
			t.Error(err)
		}
		event, err := webhook.Verify(body, r.Header, current)
		if err != nil {
			t.Errorf("a delivery is not verified: %v", err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		select {
		case events <- event:
		case <-ctx.Done():
		}
	}))
	t.Cleanup(server.Close)
	created := must(api.Webhooks.Create(ctx, intents.CreateWebhook{URL: server.URL, Types: []string{string(intents.TransferFilled)}}))(t)
	secret <- created.Secret
	t.Cleanup(func() {
		if err := api.Webhooks.Delete(context.WithoutCancel(ctx), created.ID); err != nil {
			t.Errorf("delete the webhook: %v", err)
		}
	})
	return events
}

// followIntent reads the feed from a cursor on until the intent is filled, and returns its statuses. Its events are counted without a gap.
func followIntent(ctx context.Context, t *testing.T, api *intents.Client, after, id string) (statuses []intents.TransferStatus) {
	t.Helper()
	for page, err := range api.Events.Follow(ctx, intents.EventQuery{After: after, Types: []string{"transfer.*"}}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range page.Events {
			if event.Transfer.ID != id {
				continue
			}
			statuses = append(statuses, event.Transfer.To)
			if *event.Sequence != int64(len(statuses)) {
				t.Errorf("event %d of the intent is counted %d", len(statuses), *event.Sequence)
			}
			if event.Type == intents.TransferFilled {
				return statuses
			}
		}
	}
	return statuses
}

// must ends the test on an error.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
