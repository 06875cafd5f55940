package feed

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// ID identifies an event permanently: reading or delivering it again does not change its id.
type ID uuid.UUID

// idPrefix is the prefix of the text form.
const idPrefix = "evt_"

// ParseID parses the text form exactly; ok is false for anything else.
func ParseID(text string) (id ID, ok bool) {
	digits, prefixed := strings.CutPrefix(text, idPrefix)
	parsed, err := uuid.Parse(digits)
	if !prefixed || err != nil || parsed.String() != digits { // Parse also accepts other spellings
		return ID{}, false
	}
	return ID(parsed), true
}

// String returns the text form, evt_<uuid>.
func (id ID) String() string { return idPrefix + uuid.UUID(id).String() }

// Event is something that happened to an intent or a webhook of an account. Its JSON never changes.
type Event struct {
	ID   ID
	Type Type
	// Position is the position in the feed, 0 for an event that is not in it.
	Position    int64
	AccountID   uuid.UUID
	Environment network.Environment
	At          time.Time
	// Sequence counts the events of one intent from 1 without gaps. It is 0 for an event that is not an intent's.
	Sequence int
	// Transfer is what happened to an intent, nil for an event that is not an intent's.
	Transfer *Transition
	// Data is the data of an event that is not an intent's, as JSON.
	Data json.RawMessage
}

// Transition is what happened to an intent.
type Transition struct {
	// Summary is the intent as of the event.
	Summary transfer.Summary
	// From is empty for the first event of an intent.
	From, To transfer.Status
	// Failure is empty for an intent that did not fail.
	Failure transfer.Failure
	// FailureReason explains Failure, nil for none.
	FailureReason *transfer.FailureReason
	// Simulated means that a client has simulated the transition, or changed an intent whose status it has simulated.
	Simulated bool
}

// Body returns the JSON of the event without its id, as webhooks deliver it.
func (e *Event) Body() ([]byte, error) {
	b, err := e.appendMembers([]byte{'{'})
	return append(b, '}'), err
}

// AppendJSON appends the JSON of the event in the feed: its id, then the members of Body.
func (e *Event) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, `{"id":"`...)
	b = append(b, e.ID.String()...)
	b, err := e.appendMembers(append(b, `",`...))
	return append(b, '}'), err
}

func (e *Event) appendMembers(b []byte) ([]byte, error) {
	b = append(b, `"type":`...)
	b = transfer.AppendText(b, e.Type)
	b = append(b, `,"timestamp":`...)
	b = transfer.AppendTimestamp(b, e.At)
	b = append(b, `,"environment":`...)
	b = transfer.AppendText(b, e.Environment)
	if e.Transfer == nil {
		data, err := json.Marshal(e.Data)
		b = append(b, `,"sequence":null,"data":`...)
		return append(b, data...), err
	}
	b = append(b, `,"sequence":`...)
	b = strconv.AppendInt(b, int64(e.Sequence), 10)
	b = append(b, `,"data":`...)
	return e.Transfer.appendJSON(b), nil
}

// appendJSON appends the data of an intent's event.
func (t *Transition) appendJSON(b []byte) []byte {
	b = transfer.AppendSummaryMembers(append(b, '{'), &t.Summary)
	b = append(b, `,"from":`...)
	b = transfer.AppendOptional(b, t.From)
	b = append(b, `,"to":`...)
	b = transfer.AppendText(b, t.To)
	b = append(b, `,"hash":`...)
	b = transfer.AppendOptional(b, t.Summary.Hash)
	b = append(b, `,"failure":`...)
	b = transfer.AppendOptional(b, t.Failure)
	b = transfer.AppendFailureReason(b, t.FailureReason)
	b = transfer.AppendSimulated(b, t.Simulated)
	return append(b, '}')
}
