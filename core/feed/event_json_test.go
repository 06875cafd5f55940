package feed_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"intents.internal/core/feed"
	"intents.internal/core/transfer"
	"intents.internal/core/transfer/transfertest"
	"intents.internal/pkg/network"
)

// transitionJSON are the data of an intent's event for encoding/json.
type transitionJSON struct {
	transfertest.Summary
	From    *transfer.Status  `json:"from"`
	To      transfer.Status   `json:"to"`
	Hash    *string           `json:"hash"`
	Failure *transfer.Failure `json:"failure"`

	FailureReason *transfertest.FailureReason `json:"failureReason"`
}

// bodyJSON is the body of a delivery for encoding/json; in the feed the event's id is before it.
type bodyJSON struct {
	Type        feed.Type           `json:"type"`
	Timestamp   string              `json:"timestamp"`
	Environment network.Environment `json:"environment"`
	Sequence    *int                `json:"sequence"`
	Data        any                 `json:"data"`
}

func newBodyJSON(e feed.Event) bodyJSON {
	body := bodyJSON{Type: e.Type, Timestamp: transfertest.Timestamp(e.At), Environment: e.Environment, Data: e.Data}
	if e.Transfer != nil {
		body.Sequence = &e.Sequence
		body.Data = transitionJSON{
			Summary: transfertest.NewSummary(e.Transfer.Summary),
			From:    transfertest.Optional(e.Transfer.From), To: e.Transfer.To,
			Hash: transfertest.Optional(e.Transfer.Summary.Hash), Failure: transfertest.Optional(e.Transfer.Failure),
			FailureReason: transfertest.NewFailureReason(e.Transfer.FailureReason),
		}
	}
	return body
}

func anyEvent(t *rapid.T) feed.Event {
	e := feed.Event{
		ID: feed.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")), Type: feed.TypeTransferCreated, Environment: network.Test,
		At: transfertest.Time().Draw(t, "at"), Sequence: rapid.IntRange(1, 1<<40).Draw(t, "sequence"),
	}
	if rapid.Bool().Draw(t, "of a webhook") {
		e.Data = json.RawMessage(rapid.SampledFrom([]string{`null`, `{"id": "<&>", "n": [1, 2]}`, "{\"text\": \"\u2028\"}"}).Draw(t, "data"))
		return e
	}
	e.Transfer = &feed.Transition{
		Summary: transfertest.Intent().Draw(t, "intent").Summary(),
		From:    rapid.SampledFrom([]transfer.Status{"", transfer.Created}).Draw(t, "from"), To: transfer.Submitted,
		Failure:       rapid.SampledFrom([]transfer.Failure{"", "reverted"}).Draw(t, "failure"),
		FailureReason: transfertest.Failed().Draw(t, "reason"),
	}
	return e
}

func TestEvent_JSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		body, bodyErr := e.Body()
		inFeed, feedErr := e.AppendJSON(nil)
		if bodyErr != nil || feedErr != nil {
			t.Fatal(bodyErr, feedErr)
		}
		for got, value := range map[string]any{
			string(body): newBodyJSON(e),
			string(inFeed): struct {
				ID string `json:"id"`
				bodyJSON
			}{e.ID.String(), newBodyJSON(e)},
		} {
			want, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Fatalf("(-encoding/json +appended):\n%s", diff)
			}
		}
	})
}

// Data that are no JSON are an error, as they would break the feed.
func TestEvent_InvalidData(t *testing.T) {
	t.Parallel()
	e := feed.Event{Type: feed.TypeWebhookDisabled, Data: json.RawMessage(`{"id":`)}
	if body, err := e.Body(); err == nil {
		t.Errorf("the body is %s", body)
	}
}
