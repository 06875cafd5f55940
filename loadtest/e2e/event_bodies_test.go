package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/events/event"
	"intents.internal/core/events/webhook"
	"intents.internal/core/intent/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// deliveryFaults tells how a request to a webhook differs from what the document says of events of this type.
func (c *contract) deliveryFaults(kind event.Type, header http.Header, body []byte) (faults []string) {
	parameters, _ := c.value("/webhooks/"+escape(string(kind))+"/post", "parameters").([]any)
	if len(parameters) < 3 {
		return []string{fmt.Sprintf("there is no entry with headers for %s", kind)}
	}
	for _, parameter := range parameters {
		ref, _ := parameter.(map[string]any)["$ref"].(string)
		described := strings.TrimPrefix(ref, "#")
		name, _ := c.value(described, "name").(string)
		faults = append(faults, c.headerMismatch(described, name, header.Get(name))...)
	}
	return append(faults, c.mismatch(bodySchema(kind), body)...)
}

// bodySchema is where the document has the schema of the body of an event.
func bodySchema(kind event.Type) string {
	return "/webhooks/" + escape(string(kind)) + "/post/requestBody/content/application~1json/schema"
}

// mustConform fails the test for a delivery that the document does not describe.
func (d delivery) mustConform(t *testing.T) {
	t.Helper()
	held := must(agreed())(t)
	var body struct{ Type event.Type }
	if err := json.Unmarshal(d.body, &body); err != nil {
		t.Fatalf("%v: %s", err, d.body)
	}
	for _, fault := range held.deliveryFaults(body.Type, d.header, d.body) {
		t.Errorf("%s was delivered against openapi.json: %s", body.Type, fault)
	}
}

// transferEvent is an event of an intent with this transition.
func transferEvent(kind event.Type, sequence int, of event.Transition, hash string) event.Event {
	id := uuid.MustParse("01a1fc6f-cea0-7b16-87fe-c7933bb8a48e")
	at := time.Date(2026, 11, 21, 4, 49, 8, 256e6, time.UTC)
	of.Summary = transfer.Summary{
		ID: id, Type: transfer.Bridge, Status: of.To, OrderID: [32]byte{1}, Chain: caip.ChainID{Namespace: caip.EIP155, Reference: "11155111"},
		SourceAmount: "1000000", DestinationAmount: "995000", Reference: "inv-43", Hash: hash, CreatedAt: at, UpdatedAt: at.Add(time.Minute),
	}
	return event.Event{
		ID: event.ID(uuid.New()), Type: kind, Position: 7, Environment: network.Test, At: at.Add(time.Minute), Sequence: sequence,
		Transfer: &of,
	}
}

// everyEvent has events of each type, for each transition that leads to one.
func everyEvent(t *testing.T) (events []event.Event) {
	t.Helper()
	const hash = "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"
	add := func(kind event.Type, sequence int, from, to transfer.Status, hash string, failure transfer.Failure) {
		events = append(events, transferEvent(kind, sequence, event.Transition{From: from, To: to, Failure: failure}, hash))
	}
	add(event.TypeTransferCreated, 1, "", transfer.Created, "", "")
	add(event.TypeTransferSubmitted, 2, transfer.Created, transfer.Submitted, hash, "")
	add(event.TypeTransferConfirmed, 3, transfer.Submitted, transfer.Confirmed, hash, "")
	add(event.TypeTransferFilled, 4, transfer.Confirmed, transfer.Filled, hash, "")
	add(event.TypeTransferRefundable, 4, transfer.Confirmed, transfer.Confirmed, hash, "")
	add(event.TypeTransferRefunded, 5, transfer.Confirmed, transfer.Refunded, hash, "")
	add(event.TypeTransferExpired, 2, transfer.Created, transfer.Expired, "", "")
	add(event.TypeTransferExpired, 3, transfer.Submitted, transfer.Expired, hash, "")
	add(event.TypeTransferCancelled, 2, transfer.Created, transfer.Cancelled, "", "")
	for _, failure := range []transfer.Failure{transfer.TxReverted, transfer.TxReplaced, transfer.TxMismatch, transfer.OrderIDMismatch} {
		add(event.TypeTransferFailed, 3, transfer.Submitted, transfer.Failed, hash, failure)
	}
	for _, to := range []transfer.Status{transfer.Submitted, transfer.Confirmed, transfer.Created, transfer.Expired, transfer.Cancelled} {
		add(event.TypeTransferReorganized, 5, transfer.Filled, to, hash, "")
	}
	endpoint := webhook.Endpoint{ID: uuid.New(), URL: "https://example.com/hooks", Environment: network.Live}
	for _, reason := range []webhook.Reason{webhook.DisabledGone, webhook.DisabledFailing} {
		data := must(json.Marshal(webhook.DisabledData{ID: endpoint.ID, URL: endpoint.URL, Reason: reason}))(t)
		events = append(events, event.Event{
			ID: event.ID(uuid.New()), Type: event.TypeWebhookDisabled, Position: 7, Environment: network.Live, At: time.Now(), Data: data,
		})
	}
	test := must(endpoint.TestEvent(webhook.Delivery{EventID: event.ID(uuid.New()), CreatedAt: time.Now()}))(t)
	return append(events, *test)
}

// Each type of event is sent, and is in the feed, as the document says; the entry of another type does not fit it.
func TestEventBodies_Documented(t *testing.T) {
	t.Parallel()
	held := must(agreed())(t)
	seen := map[event.Type]bool{}
	for _, e := range everyEvent(t) {
		seen[e.Type] = true
		body := must(e.Body())(t)
		delivery{http.Header{
			"Webhook-Id": {e.ID.String()}, "Webhook-Timestamp": {"1795236549"},
			"Webhook-Signature": {webhook.Sign([]webhook.Secret{webhook.NewSecret(), webhook.NewSecret()}, e.ID.String(), e.At, body)},
		}, body}.mustConform(t)
		for _, other := range append(event.Types(), event.TypeWebhookTest) {
			if other != e.Type && len(held.mismatch(bodySchema(other), body)) == 0 {
				t.Errorf("the entry of %s fits %s", other, body)
			}
		}
		if e.Type == event.TypeWebhookTest { // it is not in the feed
			continue
		}
		inFeed := must(e.AppendJSON(nil))(t)
		for _, fault := range held.mismatch("/components/schemas/Event", inFeed) {
			t.Errorf("%s in the feed: %s", e.Type, fault)
		}
	}
	for _, kind := range append(event.Types(), event.TypeWebhookTest) {
		if !seen[kind] {
			t.Errorf("no %s was held to the document", kind)
		}
	}
}
