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
	"intents.internal/core/webhooks"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

var (
	eventID = uuid.MustParse("01a1fc6f-cea0-7b16-87fe-c7933bb8a48e")
	eventAt = time.Date(2026, 11, 21, 4, 49, 8, 256e6, time.UTC)
)

// transitions are those that events tell of, by the type of the event; the first of each type is its example.
var transitions = map[feed.Type][]feed.Transition{
	feed.TypeTransferCreated:    {{To: transfer.Created}},
	feed.TypeTransferSubmitted:  {{From: transfer.Created, To: transfer.Submitted}},
	feed.TypeTransferConfirmed:  {{From: transfer.Submitted, To: transfer.Confirmed}},
	feed.TypeTransferFilled:     {{From: transfer.Confirmed, To: transfer.Filled}},
	feed.TypeTransferRefundable: {{From: transfer.Confirmed, To: transfer.Confirmed}},
	feed.TypeTransferRefunded:   {{From: transfer.Confirmed, To: transfer.Refunded}},
	feed.TypeTransferExpired:    {{From: transfer.Created, To: transfer.Expired}, {From: transfer.Submitted, To: transfer.Expired}},
	feed.TypeTransferCancelled:  {{From: transfer.Created, To: transfer.Cancelled}},
	feed.TypeTransferFailed: {
		{From: transfer.Submitted, To: transfer.Failed, Failure: transfer.TxReverted},
		{From: transfer.Submitted, To: transfer.Failed, Failure: transfer.TxReplaced},
		{From: transfer.Submitted, To: transfer.Failed, Failure: transfer.TxMismatch},
		{From: transfer.Submitted, To: transfer.Failed, Failure: transfer.OrderIDMismatch},
	},
	feed.TypeTransferUpdated: {{From: transfer.Created, To: transfer.Created}, {From: transfer.Failed, To: transfer.Failed}},
	feed.TypeTransferReorganized: {
		{From: transfer.Confirmed, To: transfer.Submitted},
		{From: transfer.Filled, To: transfer.Confirmed},
		{From: transfer.Filled, To: transfer.Created},
		{From: transfer.Filled, To: transfer.Expired},
		{From: transfer.Filled, To: transfer.Cancelled},
	},
}

// Every event is posted to webhooks, and is in the feed, as the document says, and each type has the example that the document shows.
func TestEveryEvent_Body(t *testing.T) {
	t.Parallel()
	for i, kind := range feed.Types() {
		for n, transition := range transitions[kind] {
			transition.Summary = transfer.Summary{
				ID: eventID, Environment: network.Test, Type: transfer.Bridge, Status: transition.To, OrderID: [32]byte{1},
				Source:      summaryLeg(t, aliceOnSepolia, sepoliaUSDC, "1000000"),
				Destination: summaryLeg(t, bobOnBase, baseUSDC, "995000"),
				Deadline:    eventAt.Add(time.Hour), Reference: "inv-43", CreatedAt: eventAt, UpdatedAt: eventAt,
			}
			transition.Labels = wire.NewLabels(map[string]string{"order": "43"})
			if transition.To == transfer.Submitted || transition.From != "" && transition.From != transfer.Created {
				transition.Summary.Hash = txHash("a")
			}
			if transition.Failure != "" {
				failed := &transfer.Transaction{Chain: sepolia, Hash: common.HexToHash(txHash("a")), Block: &transfer.Block{Number: 7}}
				transition.FailureReason = transition.Summary.Explain(transition.Failure, failed)
			}
			e := feed.Event{
				ID: feed.ID(eventID), Type: kind, Position: 7, Environment: network.Test, At: eventAt, Sequence: i + 1, Transfer: &transition,
			}
			mustBeDocumented(t, &e, n == 0)
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
	test, err := endpoint.TestEvent(webhooks.Delivery{EventID: feed.ID(eventID), CreatedAt: eventAt})
	if err != nil {
		t.Fatal(err)
	}
	mustBeDocumented(t, test, true)
}

func summaryLeg(t *testing.T, account, token, amount string) transfer.SummaryLeg {
	t.Helper()
	of, err := caip.ParseAccountID(account)
	if err != nil {
		t.Fatal(err)
	}
	return transfer.SummaryLeg{Chain: of.Chain, Account: of.Address, Token: token[len(of.Chain.String())+1:], Amount: amount}
}

// mustBeDocumented holds an event to the document, which describes it as one of its type and no other.
func mustBeDocumented(t *testing.T, e *feed.Event, isExample bool) {
	t.Helper()
	held, err := openAPI()
	if err != nil {
		t.Fatal(err)
	}
	body, err := e.Body()
	if err != nil {
		t.Fatal(err)
	}
	if isExample {
		recordedExamples.compare(t, string(e.Type), "request", "an event", string(body))
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
