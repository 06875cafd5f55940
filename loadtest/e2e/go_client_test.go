package e2e_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	intents "intents.internal/pkg/client"
)

// useGoClient makes a swap of a quote with the Go client, has it sent, waits until it is filled, reads its events from a stored cursor on,
// and verifies the webhook that tells of the fill. Every response is held to openapi.json.
func (w *readmeWalk) useGoClient(t *testing.T, send string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	api := w.goClient(t)
	recorded := startRecorder(t)
	hook := createWebhook(t, api, recorded.URL, string(intents.TransferFilled))
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
	statuses, last := followIntent(ctx, t, api, start.Next, transfer.ID)
	if !cmp.Equal(statuses, []intents.TransferStatus{"created", "submitted", "confirmed", "filled"}) {
		t.Errorf("the feed told of %v", statuses)
	}
	recorded.await(t, last.ID, 1)[0].mustVerify(t, hook.Secret, last)
	for listed, err := range api.Transfers.All(ctx, intents.TransferQuery{Reference: "go", Limit: 1}) {
		if err != nil || listed.ID != transfer.ID {
			t.Errorf("listed by its reference: %+v, %v", listed, err)
		}
	}
	if err := api.Webhooks.Delete(ctx, hook.ID); err != nil {
		t.Errorf("delete the webhook: %v", err)
	}
}

// goClient has a new key of the stack's account, so that the walk's key keeps its rate limit.
func (w *readmeWalk) goClient(t *testing.T) *intents.Client {
	t.Helper()
	gateway := w.value("GATEWAY_URL")
	key := signIn(t, gateway, w.value("ACCOUNT_EMAIL"), w.value("ACCOUNT_PASSWORD")).newKey().Key
	return must(intents.New(gateway, key, intents.WithHTTPClient(&http.Client{Transport: checked{t}})))(t)
}

// followIntent reads the feed from a cursor on until the intent is filled, and returns its statuses and the last event. Its events are counted
// without a gap.
func followIntent(ctx context.Context, t *testing.T, api *intents.Client, after, id string) (statuses []intents.TransferStatus, last intents.Event) {
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
				return statuses, event
			}
		}
	}
	return statuses, last
}
