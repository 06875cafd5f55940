package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/transfer"
	"intents.internal/core/web/webtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
)

var (
	eventID = uuid.MustParse("01a1fc6f-cea0-7b16-87fe-c7933bb8a48e")
	eventAt = time.Date(2026, 11, 21, 4, 49, 8, 256e6, time.UTC)
)

// transitions are those that events tell of besides that of the sample, by the type of the event.
var transitions = map[feed.Type][]feed.Transition{
	feed.TypeTransferExpired: {{From: transfer.Submitted, To: transfer.Expired}},
	feed.TypeTransferFailed: {
		{From: transfer.Submitted, To: transfer.Failed, Failure: transfer.TxReplaced},
		{From: transfer.Submitted, To: transfer.Failed, Failure: transfer.TxMismatch},
		{From: transfer.Submitted, To: transfer.Failed, Failure: transfer.OrderIDMismatch},
	},
	feed.TypeTransferUpdated: {{From: transfer.Failed, To: transfer.Failed}},
	feed.TypeTransferReorganized: {
		{From: transfer.Filled, To: transfer.Confirmed},
		{From: transfer.Filled, To: transfer.Created},
		{From: transfer.Filled, To: transfer.Expired},
		{From: transfer.Filled, To: transfer.Cancelled},
	},
}

// Every event is posted to webhooks, and is in the feed, as the document says, and each type has the example that the document shows: the sample of
// that type, as if it had happened.
func TestEveryEvent_Body(t *testing.T) {
	t.Parallel()
	for _, kind := range feed.Types() {
		for _, environment := range []network.Environment{network.Test, network.Live} {
			sample, ok := feed.Sample(kind, feed.ID(eventID), environment, eventAt)
			if !ok {
				continue
			}
			mustBeDocumented(t, &sample, false)
			sample.Transfer.Simulated = false
			mustBeDocumented(t, &sample, environment == network.Test)
			for _, other := range transitions[kind] {
				e, was := sample, sample.Transfer.Summary
				other.Summary = was
				other.Summary.Status, other.Summary.Hash = other.To, txHash("a")
				if other.Failure != "" {
					failed := &transfer.Transaction{Chain: was.Source.Chain, Hash: common.HexToHash(txHash("a")), Block: &transfer.Block{Number: 7}}
					other.FailureReason = other.Summary.Explain(other.Failure, failed)
				}
				e.Transfer = &other
				mustBeDocumented(t, &e, false)
			}
		}
	}
	endpoint := webhooks.Endpoint{ID: eventID, URL: "https://example.com/hooks", Environment: network.Test}
	for _, reason := range []webhooks.Reason{webhooks.DisabledGone, webhooks.DisabledFailing} {
		data, err := json.Marshal(webhooks.DisabledData{ID: endpoint.ID, URL: endpoint.URL, Reason: reason})
		if err != nil {
			t.Fatal(err)
		}
		e := feed.Event{ID: feed.ID(eventID), Type: feed.TypeWebhookDisabled, Position: 7, Environment: network.Test, At: eventAt, Data: data}
		mustBeDocumented(t, &e, reason == webhooks.DisabledGone)
	}
	test, err := endpoint.TestEvent(webhooks.Delivery{EventID: feed.ID(eventID), Type: feed.TypeWebhookTest, CreatedAt: eventAt})
	if err != nil {
		t.Fatal(err)
	}
	mustBeDocumented(t, test, true)
}

// mustBeDocumented holds an event to the document, which describes it as one of its type and no other.
func mustBeDocumented(t *testing.T, e *feed.Event, isExample bool) {
	t.Helper()
	held, err := webtest.Contract()
	if err != nil {
		t.Fatal(err)
	}
	body, err := e.Body()
	if err != nil {
		t.Fatal(err)
	}
	if isExample {
		webtest.CompareExample(t, string(e.Type), "request", "an event", string(body))
	}
	header := http.Header{
		"Webhook-Id": {e.ID.String()}, "Webhook-Timestamp": {"1795236549"},
		"Webhook-Signature": {webhooks.Sign([]webhooks.Secret{webhooks.NewSecret(), webhooks.NewSecret()}, e.ID.String(), e.At, body)},
	}
	for _, kind := range append(feed.Types(), feed.TypeWebhookTest) {
		faults := held.DeliveryFaults(string(kind), header, body)
		if fits := len(faults) == 0; fits != (kind == e.Type) {
			t.Errorf("as %s, %s fits is %v: %v", kind, body, fits, faults)
		}
	}
	if e.Type == feed.TypeWebhookTest { // it is not in the feed
		return
	}
	inFeed, err := e.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range held.SchemaFaults("Event", inFeed) {
		t.Errorf("%s in the feed: %s", e.Type, fault)
	}
}
